package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// checkFiles reads router.yaml and envoy.yaml, and no secret. Its error lists what is wrong with
// the first, and where the second does not fit.
func checkFiles(routerFile, envoyFile string) error {
	c, err := readSettings(routerFile)
	if err != nil {
		return fmt.Errorf("%s: %w", routerFile, err)
	}
	text, err := os.ReadFile(envoyFile) //nolint:gosec // the operator's own choice
	if err != nil {
		return err
	}
	var envoy any
	if err := yaml.Unmarshal(text, &envoy); err != nil {
		return fmt.Errorf("%s: %w", envoyFile, err)
	}
	if err := c.checkEnvoy(envoy); err != nil {
		return fmt.Errorf("%s does not fit to %s:\n%w", envoyFile, routerFile, err)
	}
	return nil
}

// listInLua finds, in envoy.yaml's Lua, the client's headers that reach a provider.
var listInLua = regexp.MustCompile(`(?s)to_provider = names \[\[(.*?)\]\]`)

// checkEnvoy returns where Envoy's configuration does not fit.
func (c config) checkEnvoy(envoy any) error {
	var all problems
	listeners, clusters, opens := valuesOf(envoy, "listeners"), valuesOf(envoy, "clusters"), with(envoy, "path_prefix", "/open")
	received := valuesOf(valuesOf(opens, "allowed_upstream_headers"), "exact")
	gets := func(header string) bool { return slices.Contains(received, any(header)) }
	crossing := strings.Fields(strings.Join(listInLua.FindStringSubmatch(fmt.Sprint(valuesOf(valuesOf(envoy, "metadata"), "headers"))), " "))
	sendsDocuments := gets("x-signalbox-host") && len(with(valuesOf(envoy, "routes"), "name", "x-signalbox-host")) > 0 && len(with(opens, "key", "x-signalbox-documents")) > 0
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[name]
		header := strings.ToLower(p.Header)
		all.addIf(len(with(clusters, "name", name)) == 0, "no cluster has the name %s", name)
		all.addIf(!gets(header), "allowed_upstream_headers of /open lacks %s, the header of %s", header, name)
		all.addIf(slices.Contains(crossing, header), "to_provider has %s: a client's own would reach %s", header, name)
		all.addIf(len(p.Paths) > 0 && !gets("x-signalbox-path"), "allowed_upstream_headers of /open lacks x-signalbox-path, for the paths of %s", name)
		all.addIf(p.Document != nil && !sendsDocuments, "documents of %s need x-signalbox-host in /open's headers and in a route, and x-signalbox-documents in headers_to_add", name)
	}
	all.addIf(!gets("x-signalbox-provider"), "allowed_upstream_headers of /open lacks x-signalbox-provider")
	user := strings.ToLower(c.UserIDHeader)
	all.addIf(user != "" && !slices.Contains(valuesOf(valuesOf(envoy, "allowed_headers"), "exact"), any(user)), "allowed_headers of /plan lacks %s, the user_id_header", user)
	for _, authorizer := range valuesOf(opens, "cluster") {
		at := with(clusters, "name", authorizer)
		var addresses []string
		for _, address := range valuesOf(at, "socket_address") {
			addresses = append(addresses, fmt.Sprintf("%v:%v", valuesOf(address, "address"), valuesOf(address, "port_value")))
		}
		for _, path := range valuesOf(valuesOf(at, "pipe"), "path") {
			addresses = append(addresses, fmt.Sprintf("unix:%v", path))
		}
		listen := strings.NewReplacer("[", "", "]", "").Replace(strings.Join(addresses, ", "))
		all.addIf(listen != c.Listen, "the cluster %v is at %q, and listen is %q", authorizer, listen, c.Listen)
		all.addIf(!each(at, "max_connections", func(n int) bool { return n+16 <= c.MaxConnections }), "max_connections of the cluster %v must leave 16 of router.yaml's", authorizer)
	}
	body := int(c.MaxBodyBytes)
	for _, name := range []string{"max_request_bytes", "request_body_buffer_limit"} {
		all.addIf(!each(envoy, name, func(n int) bool { return n == body }), "each %s must be max_body_bytes, %d", name, body)
	}
	all.addIf(!slices.Contains(valuesOf(envoy, "start"), any(body+1)), "the route for 413 must start at %d", body+1)
	all.addIf(c.OutageStatus >= 500 || !slices.Contains(valuesOf(listeners, "default_value"), any(c.OutageStatus)), "outage_status %d: Envoy drops the body of a 5xx, so set 424, which a mapper makes 503", c.OutageStatus)
	all.addIf(!each(envoy, "per_try_timeout", func(n int) bool { return 6*time.Duration(n)*time.Second <= c.PlanAge }), "plan_age must last for six attempts of per_try_timeout")
	all.addIf(!slices.Contains(valuesOf(listeners, "codec_type"), any("HTTP1")), "the clients' listener lacks codec_type: HTTP1")
	tls := valuesOf(listeners, "common_tls_context")
	protocols := valuesOf(tls, "alpn_protocols")
	all.addIf(len(protocols) != len(tls) || slices.ContainsFunc(protocols, func(p any) bool { return fmt.Sprint(p) != "[http/1.1]" }), "TLS for clients needs alpn_protocols: [http/1.1]")
	return errors.Join(all...)
}

// valuesOf returns the values of all members of that name.
func valuesOf(in any, name string) (all []any) {
	switch in := in.(type) {
	case map[string]any:
		for key, each := range in {
			if key == name {
				all = append(all, each)
			} else {
				all = append(all, valuesOf(each, name)...)
			}
		}
	case []any:
		for _, each := range in {
			all = append(all, valuesOf(each, name)...)
		}
	}
	return all
}

// with returns all objects that have a member of that name and value.
func with(in any, name string, value any) (all []any) {
	switch in := in.(type) {
	case map[string]any:
		if fmt.Sprint(in[name]) == fmt.Sprint(value) {
			return []any{in}
		}
		for _, each := range in {
			all = append(all, with(each, name, value)...)
		}
	case []any:
		for _, each := range in {
			all = append(all, with(each, name, value)...)
		}
	}
	return all
}

// numbers returns the numbers that members of that name begin with, also of 600s and 1024Mi.
func numbers(in any, name string) (all []int) {
	for _, value := range valuesOf(in, name) {
		var n int
		if _, err := fmt.Sscan(fmt.Sprint(value), &n); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// each reports whether there are such numbers, and all are right.
func each(in any, name string, isRight func(int) bool) bool {
	all := numbers(in, name)
	return len(all) > 0 && !slices.ContainsFunc(all, func(n int) bool { return !isRight(n) })
}
