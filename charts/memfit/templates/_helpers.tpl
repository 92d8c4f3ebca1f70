{{- /* The name of an image: a dict of "image" (repository, tag, digest) and "root". */ -}}
{{- define "memfit.image" -}}
{{- with .root.Values.imageRegistry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- .image.repository -}}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default (printf "v%s" .root.Chart.AppVersion) }}{{ end -}}
{{- end -}}

{{- /* What memfit would set for a Go program with this limit: 90 % of it, in bytes. The schema lets no other unit through. */ -}}
{{- define "memfit.goMemLimit" -}}
{{- $units := dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- $number := regexFind "^[0-9]+" . | int64 -}}
{{- $unit := get $units (regexFind "[KMG]i$" .) | default 1 | int64 -}}
{{- div (mul $number $unit 9) 10 -}}
{{- end -}}

{{- define "memfit.labels" -}}
app.kubernetes.io/name: memfit
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "memfit.managerSelector" -}}
app.kubernetes.io/name: memfit
control-plane: controller-manager
{{- end -}}

{{- /* Who makes certificates: cert-manager, self-managed, provided; none where nobody calls. */ -}}
{{- define "memfit.issuer" -}}
{{- if .Values.webhook.enabled }}{{ .Values.certificates.issuer }}{{ else }}none{{ end -}}
{{- end -}}
