package awsmodel_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"pgregory.net/rapid"

	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit"
)

// TestMain makes each test use the same 50 sequences in every run. The flags -rapid.checks
// and -rapid.seed change that. A failure prints its seed, so rapid need not keep a file of
// it in the repository.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { asked[f.Name] = true })
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.checks": "50", "rapid.seed": "1"} {
		if !asked[name] {
			_ = flag.Set(name, value)
		}
	}
	os.Exit(m.Run())
}

// side is the model, or the engines that it is compared with.
type side struct {
	client aws.HTTPClient
	config aws.Config
}

// sides returns the model and the engines, with the same tables and keys in both.
func sides(engines kit.Engines, arns ...string) (fake, real side) {
	engines.Config.HTTPClient = awshttp.NewBuildableClient() // one pool of connections for all clients
	w := awsmodel.New(awsmodel.Config{Tables: slices.Collect(maps.Keys(engines.Tables.Keys())), Keys: arns})
	return side{client{w}, engines.Config}, side{engines.Config.HTTPClient, engines.Config}
}

// compare makes sequences of requests to the model and to an engine. begin returns both,
// and draw, which generates one request. The responses must be the same, member by member.
func compare[S any](t *testing.T, engine string, begin func(*rapid.T) (fake, real S, draw func() (what string, do func(S) object))) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		fake, real, draw := begin(rt)
		var done []string
		for range rapid.IntRange(1, 25).Draw(rt, "length") {
			what, do := draw()
			done = append(done, what)
			want, got := do(real), do(fake)
			diff, diverged := differ(engine, what, want, got)
			if diff != "" {
				rt.Fatalf("%s: engine -, model +\n%s", strings.Join(done, "\n"), diff)
			}
			if diverged {
				return
			}
		}
	})
}

func oneOf[V any](t *rapid.T, values ...V) V { return rapid.SampledFrom(values).Draw(t, "choice") }

// client sends requests to a World.
type client struct{ *awsmodel.World }

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

// call sends a request in the JSON protocol and returns the response. It removes the
// namespace from the code of an error.
func (s side) call(t testing.TB, target string, in any) object {
	t.Helper()
	service, version, endpoint := "dynamodb", "1.0", dynamodb.NewFromConfig(s.config).Options().BaseEndpoint
	if strings.HasPrefix(target, "Trent") {
		service, version, endpoint = "kms", "1.1", kms.NewFromConfig(s.config).Options().BaseEndpoint
	}
	body, err := json.Marshal(in)
	kit.Must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, *endpoint+"/", bytes.NewReader(body))
	kit.Must(t, err)
	r.Header.Set("X-Amz-Target", target)
	r.Header.Set("Content-Type", "application/x-amz-json-"+version)
	credentials, err := s.config.Credentials.Retrieve(t.Context())
	kit.Must(t, err)
	sum := sha256.Sum256(body)
	kit.Must(t, v4.NewSigner().SignHTTP(t.Context(), credentials, r, hex.EncodeToString(sum[:]), service, s.config.Region, time.Now()))
	response, err := s.client.Do(r)
	kit.Must(t, err)
	defer func() { kit.Must(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	kit.Must(t, err)
	out := object{}
	if err := json.Unmarshal(text, &out); err != nil && len(text) > 0 {
		t.Fatalf("%s: %q is no JSON: %v", target, text, err)
	}
	if code, ok := out["__type"].(string); ok {
		out["__type"] = code[strings.LastIndex(code, "#")+1:]
	}
	if out["__type"] == "ResourceNotFoundException" {
		t.Fatalf("%s on a table that is not there: %v", target, in)
	}
	if response.StatusCode != http.StatusOK {
		out["status"] = response.StatusCode
	}
	return out
}
