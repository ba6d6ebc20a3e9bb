{{/* Names, labels and addresses that several templates use. */}}

{{- define "interpulse.name" -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{- end }}

{{- define "interpulse.select" -}}
app.kubernetes.io/name: interpulse
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "interpulse.labels" -}}
{{ include "interpulse.select" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "interpulse.image" -}}
{{ .root.Values.image.repository }}:{{ .tag | default .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{/* The address of a component's pods as they see themselves. */}}
{{- define "interpulse.domain" -}}
{{ include "interpulse.name" .root }}-{{ .component }}.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}
{{- end }}

{{/* "host:2181,host:2181" */}}
{{- define "interpulse.metadata" -}}
{{- if .Values.zookeeper.enabled -}}
{{- $domain := include "interpulse.domain" (dict "root" . "component" "zookeeper") -}}
{{- $name := include "interpulse.name" . -}}
{{- $servers := list -}}
{{- range $number := until (int .Values.zookeeper.replicas) -}}
{{- $servers = append $servers (printf "%s-zookeeper-%d.%s:2181" $name $number $domain) -}}
{{- end -}}
{{- join "," $servers -}}
{{- else -}}
{{- required "metadataServers: name the ZooKeeper servers, since zookeeper.enabled is false" .Values.metadataServers -}}
{{- end -}}
{{- end }}

{{/* For bookies: "zk+hierarchical://host:2181;host:2181/ledgers" */}}
{{- define "interpulse.ledgers" -}}
zk+hierarchical://{{ include "interpulse.metadata" . | replace "," ";" }}/ledgers
{{- end }}

{{- define "interpulse.antiAffinity" -}}
{{- if eq .root.Values.antiAffinity "required" }}
podAntiAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels: {{- include "interpulse.select" . | nindent 10 }}
{{- else }}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "interpulse.select" . | nindent 12 }}
{{- end }}
{{- end }}

{{/* The user of the image: without rights, and owner of its volumes. */}}
{{- define "interpulse.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10000
runAsGroup: 10000
fsGroup: 10000
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "interpulse.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
{{- end }}

{{/* Apache's keys as the image takes them. */}}
{{- define "interpulse.settings" -}}
{{- range $key, $value := . }}
- name: PULSAR_PREFIX_{{ $key }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "interpulse.podName" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end }}

{{/* A pod has time to start, is left alone while it works, and is restarted when it answers nothing for a minute. */}}
{{- define "interpulse.probes" -}}
startupProbe:
  httpGet: {path: {{ .path }}, port: http}
  periodSeconds: 2
  failureThreshold: 150
readinessProbe:
  httpGet: {path: {{ .path }}, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: {{ .path }}, port: http}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 6
{{- end }}
