package model_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"signalbox.dev/infra/sim/model"
	"signalbox.dev/infra/testkit"
)

// TestMain makes the same 25 sequences a test in each run, unless the flags -rapid.checks
// and -rapid.seed ask for others. A failure prints its seed, so rapid need not keep a
// file of it in the repository.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { asked[f.Name] = true })
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.checks": "25", "rapid.seed": "1"} {
		if !asked[name] {
			_ = flag.Set(name, value)
		}
	}
	os.Exit(m.Run())
}

// side is the model, or the engines that it is compared with.
type side struct {
	endpoint func(service string) string
	config   aws.Config
	do       func(*http.Request) (*http.Response, error)
	world    *model.World // nil for the engines
}

// sides returns the model and the engines, with the same tables in both.
func sides(t testing.TB) (fake, real side, engines testkit.Engines) {
	t.Helper()
	engines = testkit.Start(t)
	engines.Config.HTTPClient = awshttp.NewBuildableClient() // one pool of connections for all clients
	config := model.Config{Keys: []string{keyARN, otherARN}}
	for name, keys := range engines.Tables.Keys() {
		schema := model.TableSchema{Name: name, PK: keys[0]}
		if len(keys) > 1 {
			schema.SK = keys[1]
		}
		config.Tables = append(config.Tables, schema)
	}
	w := model.New(config)
	at := engines.Config.ConfigSources[0].(interface {
		GetServiceBaseEndpoint(context.Context, string) (string, bool, error)
	})
	real = side{config: engines.Config, do: engines.Config.HTTPClient.Do, endpoint: func(service string) string {
		url, _, err := at.GetServiceBaseEndpoint(t.Context(), service)
		testkit.Must(t, err)
		return url
	}}
	fake = side{config: engines.Config.Copy(), world: w, do: client{w}.Do, endpoint: func(string) string { return "http://127.0.0.1" }}
	return fake, real, engines
}

// The KMS keys of the model.
const (
	keyARN   = "arn:aws:kms:us-east-1:000000000000:key/11111111-1111-4111-8111-111111111111"
	otherARN = "arn:aws:kms:us-east-1:000000000000:key/22222222-2222-4222-8222-222222222222"
)

// client sends requests to a World.
type client struct{ *model.World }

// Do implements aws.HTTPClient.
func (c client) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	return c.World.Do(r, body), nil
}

type object = map[string]any

// call sends a request in the JSON protocol and returns the response. The code of an
// error is without its namespace.
func (s side) call(t testing.TB, target string, in any) object {
	t.Helper()
	service, version := "DynamoDB", "1.0"
	if strings.HasPrefix(target, "Trent") {
		service, version = "KMS", "1.1"
	}
	body, err := json.Marshal(in)
	testkit.Must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.endpoint(service)+"/", bytes.NewReader(body))
	testkit.Must(t, err)
	r.Header.Set("X-Amz-Target", target)
	r.Header.Set("Content-Type", "application/x-amz-json-"+version)
	credentials, err := s.config.Credentials.Retrieve(t.Context())
	testkit.Must(t, err)
	sum := sha256.Sum256(body)
	testkit.Must(t, v4.NewSigner().SignHTTP(t.Context(), credentials, r, hex.EncodeToString(sum[:]), strings.ToLower(service), s.config.Region, time.Now()))
	response, err := s.do(r)
	testkit.Must(t, err)
	defer func() { testkit.Must(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	out := object{}
	if err := json.Unmarshal(text, &out); err != nil && len(text) > 0 {
		t.Fatalf("%s: %q is no JSON: %v", target, text, err)
	}
	if code, ok := out["__type"].(string); ok {
		out["__type"] = code[strings.LastIndex(code, "#")+1:]
	}
	if message, ok := out["Message"]; ok {
		out["message"] = message
		delete(out, "Message")
	}
	if response.StatusCode != http.StatusOK {
		out["status"] = response.StatusCode
	}
	return out
}
