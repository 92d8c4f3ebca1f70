# The manager: one static binary and the roots of trust it needs to talk TLS. No shell, no package manager, no root.
# A static binary needs nothing under it; --build-arg BASE=<a distroless static image> where policy asks for a known base.
ARG BASE=scratch

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags "-s -w -buildid= -X main.version=${VERSION}" -o /manager ./cmd/manager

FROM ${BASE}
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /manager /manager
# nonroot, as distroless numbers it; a number, so that runAsNonRoot can be checked.
USER 65532:65532
ENTRYPOINT ["/manager"]
