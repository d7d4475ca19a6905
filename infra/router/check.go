package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// checkFiles reads router.yaml and envoy.yaml, and no secret. Its error lists the
// mistakes of the first, and the settings of the second that do not fit.
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

// checkEnvoy returns the settings of Envoy that do not fit.
func (c config) checkEnvoy(envoy any) error {
	var all problems
	listeners, clusters, opens := valuesOf(envoy, "listeners"), valuesOf(envoy, "clusters"), with(envoy, "path_prefix", "/open")
	received := valuesOf(valuesOf(opens, "allowed_upstream_headers"), "exact")
	crossing := strings.Fields(strings.Join(listInLua.FindStringSubmatch(fmt.Sprint(valuesOf(valuesOf(envoy, "metadata"), "headers"))), " "))
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[name]
		header := strings.ToLower(p.Header)
		cluster := with(clusters, "name", name)
		all.addIf(len(cluster) == 0, "no cluster has the name %s", name)
		all.addIf(len(cluster) > 0 && len(with(cluster, "name", "envoy.transport_sockets.tls")) == 0, "the cluster %s has no TLS", name)
		all.addIf(!slices.Contains(received, any(header)), "allowed_upstream_headers of /open lacks %s, the header of %s", header, name)
		all.addIf(slices.Contains(crossing, header), "to_provider has %s: a client's own would reach %s", header, name)
		all.addIf(p.Document != nil && len(with(with(clusters, "name", "documents"), "name", "envoy.transport_sockets.tls")) == 0, "the cluster documents has no TLS, for the documents of %s", name)
		all.addIf(p.Document != nil && len(with(opens, "key", "x-signalbox-documents")) == 0, "headers_to_add of /open lacks x-signalbox-documents, for the documents of %s", name)
	}
	user := strings.ToLower(c.UserIDHeader)
	all.addIf(user != "" && !slices.Contains(valuesOf(valuesOf(with(envoy, "name", "plan"), "allowed_headers"), "exact"), any(user)), "allowed_headers of /plan lacks %s, the user_id_header", user)
	early := valuesOf(envoy, "early_header_mutation_extensions")
	isStart := func(v any) bool { return strings.HasPrefix(user, fmt.Sprint(v)) }
	isRemoved := slices.ContainsFunc(slices.Concat(valuesOf(early, "remove"), valuesOf(early, "exact"), valuesOf(early, "prefix")), isStart)
	all.addIf(user != "" && !isRemoved, "early_header_mutation does not remove a client's own %s, the user_id_header", user)
	at := with(clusters, "name", "signalbox_authorizer")
	most := cmp.Or(slices.Max(append(numbers(at, "max_connections"), 0)), 1024) // Envoy's own
	all.addIf(c.MaxConnections < most+16, "max_connections must be at least %d: Envoy's to the authorizer, and 16", most+16)
	addresses := valuesOf(valuesOf(at, "pipe"), "path")
	for _, address := range valuesOf(at, "socket_address") {
		addresses = append(addresses, net.JoinHostPort(fmt.Sprint(valuesOf(address, "address")...), fmt.Sprint(valuesOf(address, "port_value")...)))
	}
	all.addIf(!slices.Contains(addresses, any(strings.TrimPrefix(c.Listen, "unix:"))), "the cluster signalbox_authorizer is at %v, and listen is %s", addresses, c.Listen)
	body := c.MaxBodyBytes
	for _, name := range []string{"max_request_bytes", "request_body_buffer_limit"} {
		isOther := func(v any) bool { return fmt.Sprint(v) != fmt.Sprint(body) }
		all.addIf(slices.ContainsFunc(valuesOf(envoy, name), isOther), "each %s must be max_body_bytes, %d", name, body)
	}
	all.addIf(len(with(envoy, "start", body+1)) == 0, "the route for 413 must start at %d", body+1)
	all.addIf(c.OutageStatus >= 500 || len(with(listeners, "default_value", c.OutageStatus)) == 0, "outage_status %d: Envoy drops the body of a 5xx, so set 424, which a mapper makes 503", c.OutageStatus)
	all.addIf(len(with(listeners, "codec_type", "HTTP1")) == 0, "the clients' listener lacks codec_type: HTTP1")
	for _, tls := range valuesOf(listeners, "common_tls_context") {
		all.addIf(fmt.Sprint(valuesOf(tls, "alpn_protocols")) != "[[http/1.1]]", "TLS for clients needs alpn_protocols: [http/1.1]")
	}
	return errors.Join(all...)
}

// objects returns all objects in it, and itself if it is one.
func objects(in any) (all []map[string]any) {
	switch in := in.(type) {
	case map[string]any:
		all = append(all, in)
		for _, each := range in {
			all = append(all, objects(each)...)
		}
	case []any:
		for _, each := range in {
			all = append(all, objects(each)...)
		}
	}
	return all
}

// valuesOf returns the values of all members with that name.
func valuesOf(in any, name string) (all []any) {
	for _, object := range objects(in) {
		if value, ok := object[name]; ok {
			all = append(all, value)
		}
	}
	return all
}

// with returns all objects that have a member with that name and value.
func with(in any, name string, value any) (all []any) {
	for _, object := range objects(in) {
		if fmt.Sprint(object[name]) == fmt.Sprint(value) {
			all = append(all, object)
		}
	}
	return all
}

// numbers returns the numbers at the start of all members with that name, also of 600s.
func numbers(in any, name string) (all []int) {
	for _, value := range valuesOf(in, name) {
		var n int
		if _, err := fmt.Sscan(fmt.Sprint(value), &n); err == nil {
			all = append(all, n)
		}
	}
	return all
}
