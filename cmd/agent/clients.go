// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/memfit/memfit/api/v1alpha1"
)

// clients returns a protobuf client for pods, and a JSON client for memfit's kinds, which CRDs serve in JSON only.
// Their requests have no rate limit: the callers limit them.
func clients(config *rest.Config) (core, own *rest.RESTClient, err error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, nil, err
	}
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	forGroup := func(group schema.GroupVersion, path, content string) (*rest.RESTClient, error) {
		c := rest.CopyConfig(config)
		c.GroupVersion, c.APIPath, c.NegotiatedSerializer = &group, path, codecs
		c.ContentType = content
		c.AcceptContentTypes = content + ",application/json"
		c.UserAgent = "memfit-agent/" + version
		c.QPS = -1
		return rest.RESTClientFor(c)
	}
	if core, err = forGroup(corev1.SchemeGroupVersion, "/api", runtime.ContentTypeProtobuf); err != nil {
		return nil, nil, err
	}
	own, err = forGroup(v1alpha1.GroupVersion, "/apis", runtime.ContentTypeJSON)
	return core, own, err
}
