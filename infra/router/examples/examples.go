// Package examples changes addresses in the examples router.yaml and envoy.yaml, for
// programs that run them on this machine. It panics if an example has another form.
package examples

import (
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// Object is a part of a YAML file.
type Object = map[string]any

// Write writes an example with changes.
func Write(example, to string, change func(Object)) error {
	text, err := os.ReadFile(filepath.Clean(example))
	if err != nil {
		return err
	}
	var c Object
	if err := yaml.Unmarshal(text, &c); err != nil {
		return err
	}
	change(c)
	text, err = yaml.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// Listen sets the port of Envoy's listener.
func Listen(envoy Object, port int) {
	as[Object](as[[]any](as[Object](envoy["static_resources"])["listeners"])[0])["address"] = Socket(port)
}

// Serve sets the ports of this machine that serve a cluster of Envoy, without TLS. A
// cluster without ports stays as it is.
func Serve(envoy Object, portsOf func(cluster string) []int) {
	for _, each := range as[[]any](as[Object](envoy["static_resources"])["clusters"]) {
		cluster := as[Object](each)
		ports := portsOf(as[string](cluster["name"]))
		if len(ports) == 0 {
			continue
		}
		delete(cluster, "transport_socket")
		var endpoints []any
		for _, port := range ports {
			endpoints = append(endpoints, Object{"endpoint": Object{"address": Socket(port)}})
		}
		as[Object](cluster["load_assignment"])["endpoints"] = []any{Object{"lb_endpoints": endpoints}}
	}
}

// Socket is Envoy's form of a port of this machine.
func Socket(port int) Object {
	return Object{"socket_address": Object{"address": "127.0.0.1", "port_value": port}}
}

// Route sets the stack, the file of name keys, and the status that Envoy needs for outages.
func Route(router Object, port int, nameKeys string, outputs map[string]string) {
	router["listen"] = fmt.Sprintf("127.0.0.1:%d", port)
	router["name_keys_file"] = nameKeys
	router["outage_status"] = 424
	stack := as[Object](router["stack"])
	for name := range stack {
		stack[name] = outputs[name]
	}
}

// KeyFiles sets the file of each provider's platform key. "" means none.
func KeyFiles(router Object, fileOf func(provider string) string) {
	for name, each := range as[Object](router["providers"]) {
		provider := as[Object](each)
		if delete(provider, "key_file"); fileOf(name) != "" {
			provider["key_file"] = fileOf(name)
		}
	}
}

func as[T any](part any) T {
	t, ok := part.(T)
	if !ok {
		panic(fmt.Errorf("a part of an example is a %T", part))
	}
	return t
}
