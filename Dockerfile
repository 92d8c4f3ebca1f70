# The manager: one static binary with its roots of trust, the same that `make image` packs. No shell, no package manager, no root.
# It is built outside (`make docker-build`, `make docker-buildx`), so no builder image has to be trusted or pinned; `scratch` is nothing and
# cannot change. --build-arg BASE=<a distroless static image>@sha256:<its digest> where policy asks for a known base.
ARG BASE=scratch
FROM ${BASE}
# The processor, as Go calls it; buildx fills it in.
ARG TARGETARCH
COPY --chmod=0755 dist/image/linux/${TARGETARCH}/manager /manager
# nonroot, as distroless numbers it; a number, so that runAsNonRoot can be checked.
USER 65532:65532
ENTRYPOINT ["/manager"]
