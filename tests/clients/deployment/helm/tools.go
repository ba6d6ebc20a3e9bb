//go:build tools

// Package tools names the programs that test_helm_chart.py builds, so that go.mod pins them.
package tools

import (
	_ "github.com/yannh/kubeconform/cmd/kubeconform"
	_ "helm.sh/helm/v3/cmd/helm"
)
