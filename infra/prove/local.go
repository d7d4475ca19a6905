package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// gateway asks the probes of a gateway that a URL is enough for, before functions
// that work on the state of `make run`. Those that expected does not name must
// PASS; what it names must come true.
func gateway(ctx context.Context, o options) error {
	a, err := localAsker(o)
	if err != nil {
		return err
	}
	if a.tenant, err = a.newTenant(ctx, "of the probes of a gateway"); err != nil {
		return err
	}
	expected := map[string]string{}
	for name := range strings.FieldsSeq(o.expected) {
		id, v, _ := strings.Cut(name, "=")
		expected[id] = v
	}
	var wrong []string
	for _, p := range gatewayProbes() {
		if p.stage != first {
			continue
		}
		r := askOne(ctx, p, a)
		want := string(pass)
		if v, ok := expected[p.id]; ok {
			want = v
			delete(expected, p.id)
		}
		_, _ = fmt.Fprintf(o.out, "%-9s %-22s %s\n", r.Verdict, r.ID, cell(r.Seen))
		if string(r.Verdict) != want {
			wrong = append(wrong, fmt.Sprintf("%s is %s, not %s", p.id, r.Verdict, want))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(expected)) {
		wrong = append(wrong, "there is no probe "+id)
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

// localAsker asks of the URL, as the account of the single-machine edition whose
// state is in the folder.
func localAsker(o options) (*asker, error) {
	text, err := os.ReadFile(filepath.Join(o.local, "stack.json"))
	if err != nil {
		return nil, fmt.Errorf("reading what `make run` serves: %w", err)
	}
	var stack struct {
		Region    string
		ID        string            `json:"access_key_id"`
		Secret    string            `json:"secret_access_key"`
		Endpoints map[string]string `json:"endpoints"`
		Outputs   map[string]string `json:"outputs"`
	}
	if err := json.Unmarshal(text, &stack); err != nil {
		return nil, fmt.Errorf("decoding what `make run` serves: %w", err)
	}
	stack.Outputs["ApiBaseUrl"] = o.url
	c := aws.Config{Region: stack.Region, Credentials: credentials.NewStaticCredentialsProvider(stack.ID, stack.Secret, "")}
	return &asker{
		clients: &clients{config: c, s3: s3.NewFromConfig(c, func(s *s3.Options) { s.BaseEndpoint = aws.String(stack.Endpoints["s3"]) })},
		target:  target{local: o.local, outputs: stack.Outputs, parameters: map[string]string{"DeleteBurst": o.burst}},
		root:    o.root, http: newHTTP(), patience: o.patience,
	}, nil
}
