// Package standin plays the part of AWS for `make prove` on a machine without an
// account: the stack's life, its alarms, its logs. What the functions do is real:
// each deployment is a single-machine edition, and requests for DynamoDB, S3 and KMS
// go to its engines.
//
// Each switch makes one answer wrong on purpose, so that a test can see the probe
// that asks for it report that, and no other.
package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"signalbox.dev/infra/local/edition"
	"signalbox.dev/infra/local/template"
)

// Account and Region are those that the stand-in plays.
const (
	Account = "123456789012"
	Region  = template.Region

	commandPath = "/stand-in/sam"
)

// StandIn is a running stand-in.
type StandIn struct {
	// URL is AWS's endpoint, for all services.
	URL string

	root, dir string
	server    *http.Server
	resources []declared // of template.yaml
	api       template.API

	mu       sync.Mutex
	wrong    map[string]bool
	once     map[string]int // what a switch has counted since it was turned on
	editions map[string]*deployment
	stacks   []*stack
	buckets  map[string][]string // those without an engine, and what is in them
	tables   map[string]*table
	keys     map[string]*key
	groups   map[string]string // log groups: the function's logical id, or ""
	roles    map[string]bool
	role     string // the region's logging role
	queues   map[string][]string
	tagged   map[string]bool   // buckets and queues
	heard    map[string]string // the queue of a topic
	failures []error
}

// deployment is an edition with certain parameters.
type deployment struct {
	edition *edition.Edition
	state   string
	outputs map[string]string
	engines struct{ DynamoDB, KMS, S3 string }
	// faulty, if set, gets a part of the requests for the job.
	faulty  *canary
	nth     int
	second  bool
	firewal bool
}

type table struct{ protected, deleted bool }

type key struct {
	state string
	when  time.Time
}

// declared is a resource of the template.
type declared struct {
	id, kind, condition, policy string
	properties                  map[string]any
}

// New starts a stand-in for the repository at root, which keeps its state in dir.
func New(root, dir string) (*StandIn, error) {
	s := &StandIn{
		root: root, dir: dir, wrong: map[string]bool{}, once: map[string]int{}, editions: map[string]*deployment{},
		buckets: map[string][]string{}, tables: map[string]*table{}, keys: map[string]*key{}, groups: map[string]string{},
		roles: map[string]bool{}, queues: map[string][]string{}, tagged: map[string]bool{}, heard: map[string]string{},
	}
	if err := s.readTemplate(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	s.URL = "http://" + listener.Addr().String()
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(listener) }() // ends with Close
	return s, nil
}

// Close ends the editions and the stand-in.
func (s *StandIn) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	problems := append(s.failures, s.server.Close())
	for _, d := range s.editions {
		problems = append(problems, d.edition.Close())
	}
	return errors.Join(problems...)
}

// Environment is what a command needs to take the stand-in for AWS. Each service has
// its own variable: AWS_ENDPOINT_URL would also reach the editions of this process.
func (s *StandIn) Environment() []string {
	all := []string{
		"AWS_REGION=" + Region, "AWS_DEFAULT_REGION=" + Region,
		"AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", // AWS's published example
		"AWS_SESSION_TOKEN=", "AWS_PROFILE=", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
	for _, service := range []string{
		"API_GATEWAY", "CLOUDFORMATION", "CLOUDWATCH", "CLOUDWATCH_LOGS", "DYNAMODB", "IAM", "KMS", "LAMBDA", "S3", "SNS", "SQS", "STS",
	} {
		all = append(all, "AWS_ENDPOINT_URL_"+service+"="+s.URL)
	}
	return all
}

// Turn turns exactly these switches on.
func (s *StandIn) Turn(switches ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong, s.once = map[string]bool{}, map[string]int{}
	for _, name := range switches {
		s.wrong[name] = true
	}
}

// is reports whether a switch is on. The caller holds no lock.
func (s *StandIn) is(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrong[name]
}

// nth counts up what a switch has seen, from 1.
func (s *StandIn) nth(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.once[name]++
	return s.once[name]
}

// readTemplate reads which resources the template declares.
func (s *StandIn) readTemplate() error {
	path := filepath.Join(s.root, "template.yaml")
	loaded, err := template.Load(path, nil)
	if err != nil {
		return err
	}
	if s.api, err = loaded.API(); err != nil {
		return err
	}
	text, err := os.ReadFile(path) //nolint:gosec // the project's own
	if err != nil {
		return err
	}
	var document struct {
		Resources map[string]struct {
			Type           string    `yaml:"Type"`
			Condition      string    `yaml:"Condition"`
			DeletionPolicy string    `yaml:"DeletionPolicy"`
			Properties     yaml.Node `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("reading the template: %w", err)
	}
	for id, r := range document.Resources {
		properties, _ := plain(&r.Properties).(map[string]any)
		s.resources = append(s.resources, declared{id, r.Type, r.Condition, r.DeletionPolicy, properties})
	}
	slices.SortFunc(s.resources, func(a, b declared) int { return strings.Compare(a.id, b.id) })
	return nil
}

// plain returns a node as maps, slices and texts: of an intrinsic function its text.
func plain(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plain(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		var all []any
		for _, c := range n.Content {
			all = append(all, plain(c))
		}
		return all
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
	}
	return n.Value
}

// signed finds the service that a request was signed for.
var signed = regexp.MustCompile(`Credential=[^/]+/\d{8}/[^/]+/([^/]+)/aws4_request`)

// ServeHTTP is every AWS service.
func (s *StandIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == commandPath {
		s.sam(w, r)
		return
	}
	found := signed.FindStringSubmatch(r.Header.Get("Authorization"))
	if found == nil {
		http.Error(w, "not signed", http.StatusForbidden)
		return
	}
	switch service := found[1]; service {
	case "cloudformation", "sts", "sns", "iam":
		s.query(service, w, r)
	case "logs", "sqs":
		s.json(service, w, r)
	case "monitoring":
		s.monitoring(w, r)
	case "lambda":
		s.lambda(w, r)
	case "apigateway":
		s.gateway(w, r)
	case "dynamodb":
		s.dynamodb(w, r)
	case "kms":
		s.kms(w, r)
	case "s3":
		s.s3(w, r)
	default:
		s.unknown(w, service+" "+r.Method+" "+r.URL.Path)
	}
}

// unknown refuses what the stand-in does not play. It fails whoever closes it.
func (s *StandIn) unknown(w http.ResponseWriter, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, fmt.Errorf("the stand-in does not play %s", what))
	http.Error(w, what, http.StatusNotImplemented)
}

// forward sends a request to an engine, unchanged, so that its signature holds.
func forward(w http.ResponseWriter, r *http.Request, to string, change func(*http.Response) error) {
	target, err := url.Parse(to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = target.Scheme, target.Host, p.In.Host
			p.Out.URL.RawQuery = p.In.URL.RawQuery
		},
		ModifyResponse: change,
	}).ServeHTTP(w, r)
}

// engines are those of the deployment that serves now.
func (s *StandIn) engines() (d *deployment, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range slices.Backward(s.stacks) {
		if st.deployment != nil && st.status != deleteComplete {
			return st.deployment, true
		}
	}
	return nil, false
}

// deployed returns the edition with these parameters. It is started once: another
// stack with the same ones gets the same edition.
func (s *StandIn) deployed(ctx context.Context, parameters map[string]string) (*deployment, error) {
	signature := fmt.Sprint(parameters)
	s.mu.Lock()
	d, ok := s.editions[signature]
	s.mu.Unlock()
	if ok {
		return d, nil
	}
	d = &deployment{
		state:  filepath.Join(s.dir, fmt.Sprint("edition-", len(s.editions))),
		second: parameters["FilesVersioning"] == "Enabled", firewal: parameters["Firewall"] == "On",
	}
	var err error
	if d.edition, err = edition.Start(ctx, edition.Options{
		Root: s.root, State: d.state, Parameters: parameters,
		Wrap: func(gateway http.Handler) http.Handler { return &front{s, d, gateway} },
	}); err != nil {
		return nil, fmt.Errorf("starting an edition: %w", err)
	}
	var described struct {
		Outputs   map[string]string
		Endpoints struct{ DynamoDB, KMS, S3 string }
	}
	text, err := os.ReadFile(filepath.Join(d.state, "stack.json"))
	if err == nil {
		err = json.Unmarshal(text, &described)
	}
	if err != nil {
		return nil, errors.Join(err, d.edition.Close())
	}
	d.outputs, d.engines = described.Outputs, described.Endpoints
	s.mu.Lock()
	defer s.mu.Unlock()
	s.editions[signature] = d
	return d, nil
}

func readAll(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body) // what is cut off is an unknown request
	return body
}
