// Command judge calls models through Envoy, beside the authorizer, and compares what the
// providers receive with the plan of a second implementation. Envoy is a foreign engine;
// envoy.yaml and router.yaml are unchanged except for addresses. `infra/router/routers` runs it.
//
// It judges orders and counts. Where an event must come after another one, a provider here
// waits for it: no check depends on the speed of the machine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"signalbox.dev/infra/router/examples"
)

func main() {
	b := &bench{
		build:    flag.String("build", "../../.build", "the folder of the binaries"),
		envoyAt:  flag.String("envoy", "envoy", "Envoy's binary"),
		requests: flag.Int("requests", 10000, "the number of random requests"),
		seed:     flag.Uint64("seed", 1, "of everything random"),
		only:     flag.String("only", "", "the one check to make"),
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1) //nolint:gocritic // the signal handler may end with the process
	}
}

// failure is a check that failed.
type failure struct{ text string }

func (f failure) Error() string { return f.text }

// check panics with a failure. together and run return it as an error.
func check(holds bool, what string, seen ...any) {
	if !holds {
		panic(failure{fmt.Sprintf("%s: %+v", what, seen)})
	}
}

func must(err error) {
	if err != nil {
		panic(failure{err.Error()})
	}
}

func caught(f func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case error:
			err = v
		default:
			panic(v)
		}
	}()
	f()
	return nil
}

// together runs f n times side by side. A failure ends the others when they ask.
func together(n int, f func(i int)) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var all error
	for i := range n {
		group.Go(func() {
			if err := caught(func() { f(i) }); err != nil {
				mu.Lock()
				all = errors.Join(all, err)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	must(all)
}

// bench is everything that runs.
type bench struct {
	build, envoyAt, only *string
	requests             *int
	seed                 *uint64

	work        string
	random      *rand.Rand
	providers   *providers
	dynamodb    *proxy
	kms         *proxy
	server      *process
	authorizers []*process
	envoy       *process
	url         string // Envoy's
	api         string
	client      *http.Client

	useAuthorizers func(count int) // restarts Envoy
	numbers        atomic.Int64
}

// process is a program that can be killed and started again on the same port.
type process struct {
	command []string
	env     []string
	log     string
	url     string // "" if it has none
	ready   func() bool

	mu      sync.Mutex
	running *exec.Cmd
	ended   chan struct{}
}

func (p *process) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(err)
	c := exec.Command(p.command[0], p.command[1:]...) //nolint:gosec,noctx // it ends with stop
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), p.env...), log, log
	must(c.Start())
	must(log.Close())
	p.running, p.ended = c, make(chan struct{})
	go func(ended chan struct{}) {
		_ = c.Wait()
		close(ended)
	}(p.ended)
	for !p.ready() {
		select {
		case <-p.ended:
			text, _ := os.ReadFile(p.log)
			panic(failure{fmt.Sprintf("%s ended: %s", p.command[0], text[max(0, len(text)-3000):])})
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stop sends the signal and waits for the end.
func (p *process) stop(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		return
	}
	_ = p.running.Process.Signal(s) // it may have ended
	<-p.ended
}

// memory is the process's resident memory in MB.
func (p *process) memory() int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.running.Process.Pid))
	must(err)
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	var kB int
	_, err = fmt.Sscan(after, &kB)
	must(err)
	return kB / 1024
}

// ports are below those that a system gives out for "any port".
var ports = struct {
	sync.Mutex
	next int
}{next: 20000 + rand.IntN(10000)} //nolint:gosec // no secret

func freePort() int {
	ports.Lock()
	defer ports.Unlock()
	for {
		ports.next++
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports.next)); err == nil { //nolint:noctx // at once
			must(l.Close())
			return ports.next
		}
	}
}

func isUp(url string) func() bool {
	return func() bool {
		r, err := http.Get(url) //nolint:gosec,noctx // our own
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	}
}

func (b *bench) run(ctx context.Context) (err error) {
	b.work, err = os.MkdirTemp("", "judge")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.work) }()
	b.random = rand.New(rand.NewPCG(*b.seed, 0)) //nolint:gosec // a seed
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true}}
	done := make(chan error, 1)
	go func() {
		done <- caught(func() {
			b.start()
			b.checks()
		})
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		for _, log := range []string{"authorizer-0.log", "envoy.log"} {
			text, _ := os.ReadFile(filepath.Join(b.work, log)) //nolint:gosec // our own
			fmt.Fprintf(os.Stderr, "%s: …%s\n", log, text[max(0, len(text)-2000):])
		}
	}
	for _, p := range append(b.authorizers, b.envoy) {
		if p != nil {
			p.stop(os.Kill)
		}
	}
	if b.server != nil {
		b.server.stop(syscall.SIGTERM)
	}
	return err
}

func (b *bench) start() {
	state := filepath.Join(b.work, "state")
	b.server = &process{
		command: []string{filepath.Join(*b.build, "local"), "-root", "../..", "-state", state, "-port", "0"}, env: []string{"QUIET=1"},
		log: filepath.Join(b.work, "server.log"), ready: func() bool { _, err := os.Stat(filepath.Join(state, "demo.json")); return err == nil },
	}
	b.server.start()
	var demo struct {
		URL string `json:"base_url"`
	}
	var stack struct {
		Endpoints struct{ DynamoDB, KMS string }
		Outputs   map[string]string
		ID        string `json:"access_key_id"`
		Secret    string `json:"secret_access_key"`
	}
	readJSON(filepath.Join(state, "demo.json"), &demo)
	readJSON(filepath.Join(state, "stack.json"), &stack)
	b.api = demo.URL
	b.dynamodb, b.kms = newProxy(stack.Endpoints.DynamoDB), newProxy(stack.Endpoints.KMS)
	b.providers = newProviders()

	names, err := exec.Command(filepath.Join(*b.build, "router"), "names-key").Output() //nolint:gosec,noctx // our own
	must(err)
	must(os.WriteFile(filepath.Join(b.work, "name-keys"), names, 0o600))
	authorizers := []int{freePort(), freePort()}
	for i, port := range authorizers {
		file := filepath.Join(b.work, fmt.Sprintf("router-%d.yaml", i))
		must(examples.Write("router.yaml", file, func(c examples.Object) { b.routerConfig(c, port, stack.Outputs) }))
		b.authorizers = append(b.authorizers, &process{
			command: []string{filepath.Join(*b.build, "router"), "-config", file},
			env: []string{"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=" + stack.ID, "AWS_SECRET_ACCESS_KEY=" + stack.Secret,
				"AWS_ENDPOINT_URL_DYNAMODB=" + b.dynamodb.url, "AWS_ENDPOINT_URL_KMS=" + b.kms.url},
			log: filepath.Join(b.work, fmt.Sprintf("authorizer-%d.log", i)), url: fmt.Sprintf("http://127.0.0.1:%d", port),
			ready: func() bool {
				return exec.Command(filepath.Join(*b.build, "router"), "-config", file, "ready").Run() == nil //nolint:gosec,noctx // our own
			},
		})
	}
	port, admin := freePort(), freePort()
	b.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	file := filepath.Join(b.work, "envoy.yaml")
	configure := func(count int) {
		must(examples.Write("envoy.yaml", file, func(c examples.Object) { b.envoyConfig(c, port, admin, authorizers[:count]) }))
	}
	configure(len(authorizers))
	b.useAuthorizers = func(count int) {
		b.envoy.stop(os.Kill)
		configure(count)
		b.envoy.start()
	}
	b.envoy = &process{
		command: []string{*b.envoyAt, "-c", file, "-l", "warn", "--concurrency", "2", "--use-dynamic-base-id"},
		log:     filepath.Join(b.work, "envoy.log"), ready: isUp(fmt.Sprintf("http://127.0.0.1:%d/ready", admin)),
	}
	together(3, func(i int) { []*process{b.authorizers[0], b.authorizers[1], b.envoy}[i].start() })
}

func (b *bench) routerConfig(c examples.Object, port int, outputs map[string]string) {
	examples.Route(c, port, filepath.Join(b.work, "name-keys"), outputs)
	c["models"] = models
	examples.KeyFiles(c, func(name string) string {
		file := filepath.Join(b.work, name)
		must(os.WriteFile(file, []byte("sk-platform-"+name+"\n"), 0o600))
		return file
	})
}

// envoyConfig sets the addresses. The providers here have no TLS, and answer within 5 s.
func (b *bench) envoyConfig(c examples.Object, port, admin int, authorizers []int) {
	c["admin"] = examples.Object{"address": examples.Socket(admin)}
	examples.Listen(c, port)
	examples.Serve(c, func(cluster string) []int {
		if cluster == "signalbox_authorizer" {
			return authorizers
		}
		if port, ok := b.providers.ports[cluster]; ok {
			return []int{port}
		}
		return nil
	})
	replace(c, "per_try_timeout", "5s")
}

// replace sets each member of that name.
func replace(in any, name string, value any) {
	switch in := in.(type) {
	case map[string]any:
		for key, each := range in {
			if key == name {
				in[key] = value
			} else {
				replace(each, name, value)
			}
		}
	case []any:
		for _, each := range in {
			replace(each, name, value)
		}
	}
}

func readJSON(file string, into any) {
	text, err := os.ReadFile(file) //nolint:gosec // our own
	must(err)
	must(json.Unmarshal(text, into))
}

// admin runs the operator's command.
func (b *bench) admin(into any, arguments ...string) {
	command := exec.Command(filepath.Join(*b.build, "admin"), append([]string{"--local", filepath.Join(b.work, "state"), "--json"}, arguments...)...) //nolint:gosec,noctx // our own
	var complaint strings.Builder
	command.Stderr = &complaint
	text, err := command.Output()
	check(err == nil, "admin "+strings.Join(arguments, " "), err, complaint.String())
	if into != nil {
		must(json.Unmarshal(text, into))
	}
}

// got is what a caller received, and what the providers did.
type got struct {
	status   int
	received []received
	text     string
	header   http.Header
}

// call calls the model "small" with these answers of the providers.
func (b *bench) call(key string, answers ...string) got {
	return b.send(key, "small", nil, "", answers...)
}

func (b *bench) send(key, model string, header map[string]string, query string, answers ...string) got {
	number := fmt.Sprint(b.numbers.Add(1))
	body, err := json.Marshal(map[string]any{"model": model, "messages": []any{map[string]any{"role": "user", "content": strings.Join(append([]string{number}, answers...), " ")}}})
	must(err)
	g, err := b.post(key, "/v1/chat/completions"+query, strings.NewReader(string(body)), header)
	check(err == nil, "a call", err)
	g.received = b.providers.take(number)
	return g
}

func (b *bench) post(key, path string, body io.Reader, header map[string]string) (got, error) {
	r, err := http.NewRequest(http.MethodPost, b.url+path, body) //nolint:noctx // it ends with Envoy
	must(err)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	response, err := b.client.Do(r)
	if err != nil {
		return got{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	g := got{status: response.StatusCode, text: string(text), header: response.Header}
	for name, values := range response.Header {
		isOurs := strings.HasPrefix(name, "X-Signalbox") && name != "X-Signalbox-Served-By"
		check(!isOurs && !b.providers.isSecret(strings.Join(values, " ")) && name != "Openai-Organization" && name != "Set-Cookie", "a caller gets no header of ours, and none about a provider's account", name, values)
	}
	check(!strings.Contains(g.text, "sk-"), "no key is in a response", g.text)
	return g, err
}

// reason is the reason of a refusal, in our envelope with this status.
func (g got) reason() string {
	var envelope struct {
		Error struct {
			Code     int
			Metadata struct{ Reason string }
		}
	}
	if json.Unmarshal([]byte(g.text), &envelope) != nil || envelope.Error.Code != g.status || g.header.Get("Content-Type") != "application/json" {
		return "no envelope: " + g.text
	}
	return envelope.Error.Metadata.Reason
}
