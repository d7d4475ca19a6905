package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/go-json-experiment/json"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/secret"
)

// document says how a provider's keys that are JSON documents are read. A tenant writes the
// document, so everything here is a list of permissions: other members, hosts and paths are
// refused. No part of a document is in an error, because a key may be in the wrong place.
type document struct {
	Key          string   `yaml:"key"`           // the member with the key
	AccessKeyID  string   `yaml:"access_key_id"` // with it, Key is AWS's secret access key
	SessionToken string   `yaml:"session_token"`
	Model        string   `yaml:"model"`      // with it, the document may be a list
	Deployment   string   `yaml:"deployment"` // Azure's name of the model
	URL          string   `yaml:"url"`
	Region       string   `yaml:"region"`
	Regions      []string `yaml:"regions"`
	// Hosts may have a * in place of one label, which is the URL's or the region.
	Hosts []string `yaml:"hosts"`
	// Paths are those of URLs. A * is a deployment.
	Paths paths `yaml:"paths"`
}

// paths are the calls under each path, such as "/openai/v1": ["chat/completions"].
type paths map[string][]string

// target is a key and its destination. Without a host it is for the provider's own, and
// without a path the client's is right.
type target struct {
	key        secret.Bytes
	host, path string
}

func refuseDocument(what, format string, args ...any) error {
	return &refusal{http.StatusUnprocessableEntity, "document_" + what, fmt.Errorf(format, args...)}
}

// target returns the destination of the stored key for a call of a model. The key of a document
// is a new secret. The error is a *refusal.
func (p *providerConfig) target(ctx context.Context, stored secret.Bytes, call, model string) (target, error) {
	form := byok.FormOf(stored.Reveal())
	switch {
	case form == byok.Document && p.Document != nil:
		return p.read(ctx, stored.Reveal(), call, model)
	case !form.FitsHeader():
		return target{}, &refusal{http.StatusUnprocessableEntity, "key_is_" + string(form), errors.New("its key cannot be sent in a header")}
	case p.Plain == plainRefused:
		return target{}, &refusal{http.StatusUnprocessableEntity, "key_is_plain", errors.New("a key of this provider must be a document that names its host")}
	}
	path, err := p.path(call)
	return target{stored, "", path}, err
}

// path returns the provider's path for a call, or "" if it is the client's.
func (p *providerConfig) path(call string) (string, error) {
	for base, calls := range p.Paths {
		if slices.Contains(calls, call) {
			return base + "/" + call, nil
		}
	}
	if len(p.Paths) == 0 {
		return "", nil
	}
	return "", &refusal{http.StatusNotFound, "unknown_call", nil}
}

// read returns the target that a document names for the model.
func (p *providerConfig) read(ctx context.Context, text []byte, call, model string) (t target, err error) {
	d := p.Document
	members, err := d.members(text, model)
	if err != nil {
		return target{}, err
	}
	if d.URL != "" {
		t, err = d.endpoint(members, call, model)
	} else {
		t.path, err = p.path(call)
		if err == nil {
			t.host, err = d.regional(members[d.Region])
		}
	}
	if err != nil {
		return target{}, err
	}
	for _, name := range named(d.Key, d.AccessKeyID, d.SessionToken) {
		if value := members[name]; value != "" && !byok.FormOf([]byte(value)).FitsHeader() {
			return target{}, refuseDocument("member", "%s cannot be sent in a header", name)
		}
	}
	if d.AccessKeyID != "" {
		credentials := aws.Credentials{AccessKeyID: members[d.AccessKeyID], SecretAccessKey: members[d.Key], SessionToken: members[d.SessionToken]}
		t.key, err = bedrockKey(ctx, credentials, members[d.Region], time.Now())
		return t, err
	}
	t.key = secret.New([]byte(members[d.Key]))
	return t, nil
}

// members returns the members of the document, or of its element for the model.
func (d *document) members(text []byte, model string) (map[string]string, error) {
	all := make([]map[string]string, 1)
	var err error
	if isList := bytes.TrimLeft(text, " \t\r\n")[0] == '['; isList && d.Model != "" {
		err = json.Unmarshal(text, &all)
	} else {
		err = json.Unmarshal(text, &all[0])
	}
	if err != nil {
		return nil, refuseDocument("json", "it is not JSON with texts under distinct names")
	}
	var found []map[string]string
	for _, members := range all {
		if err := d.checkMembers(members); err != nil {
			return nil, err
		}
		if d.Model == "" || members[d.Model] == model {
			found = append(found, members)
		}
	}
	if len(found) != 1 {
		return nil, refuseDocument("model", "%s: %d elements have the model, and one must", d.Model, len(found))
	}
	return found[0], nil
}

func (d *document) checkMembers(members map[string]string) error {
	required := named(d.Key, d.AccessKeyID, d.Model, d.URL)
	known := append(required, named(d.SessionToken, d.Deployment, d.Region)...)
	if strings.HasPrefix(members[d.AccessKeyID], "ASIA") { // AWS's temporary keys
		required = append(required, d.SessionToken)
	}
	for name, value := range members {
		if !slices.Contains(known, name) || value == "" {
			return refuseDocument("member", "one is empty, or is not one of %s", strings.Join(known, ", "))
		}
	}
	for _, name := range required {
		if members[name] == "" {
			return refuseDocument("member", "%s is missing", name)
		}
	}
	return nil
}

// named returns those names that the configuration has.
func named(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// regional returns the host of the document's region.
func (d *document) regional(region string) (string, error) {
	if !slices.Contains(d.Regions, region) {
		return "", refuseDocument("region", "%s must be one of %s", d.Region, strings.Join(d.Regions, ", "))
	}
	return strings.Replace(d.Hosts[0], "*", region, 1), nil
}

var (
	isAuthority  = regexp.MustCompile(`^[A-Za-z0-9.-]{1,253}(:443)?$`)
	isLabel      = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	isPath       = regexp.MustCompile(`^((?:/[A-Za-z0-9][A-Za-z0-9._-]*)*)/?(\?api-version=[A-Za-z0-9.-]+)?$`)
	isDeployment = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// endpoint returns the host of the document's URL, and the path of the call there.
func (d *document) endpoint(members map[string]string, call, model string) (target, error) {
	rest, isHTTPS := strings.CutPrefix(members[d.URL], "https://")
	end := strings.IndexAny(rest+"/", `/?#\`)
	host := strings.ToLower(strings.TrimSuffix(rest[:end], ":443"))
	if !isHTTPS || !isAuthority.MatchString(rest[:end]) || !slices.ContainsFunc(d.Hosts, func(pattern string) bool { return fits(host, pattern, isLabel) }) {
		return target{}, refuseDocument("host", "%s must begin with https:// and one of %s", d.URL, strings.Join(d.Hosts, ", "))
	}
	parts := isPath.FindStringSubmatch(rest[end:])
	if parts == nil {
		return target{}, refuseDocument("path", "%s has characters that no path here has", d.URL)
	}
	for _, base := range slices.Sorted(maps.Keys(d.Paths)) {
		calls := d.Paths[base]
		path, isUnder := under(parts[1], base, calls)
		if !isUnder {
			continue
		}
		deployment := model // which the path names, or else the request
		if strings.HasSuffix(base, "*") {
			deployment = path[strings.LastIndex(path, "/")+1:]
		}
		switch named := members[d.Deployment]; {
		case !slices.Contains(calls, call):
			return target{}, refuseDocument("path", "%s has no /v1/%s", d.URL, call)
		case parts[2] == "" && !strings.HasSuffix(base, "/v1"):
			return target{}, refuseDocument("path", "this %s needs ?api-version=", d.URL)
		case named != "" && named != deployment:
			return target{}, refuseDocument("model", "%s must be the deployment of %s, or else the model", d.Deployment, d.URL)
		}
		return target{host: host, path: path + "/" + call + parts[2]}, nil
	}
	return target{}, refuseDocument("path", "%s must be one of %s", d.URL, strings.Join(slices.Sorted(maps.Keys(d.Paths)), ", "))
}

// under returns the path without a call at its end, if that is the base.
func under(path, base string, calls []string) (string, bool) {
	for _, call := range append([]string{""}, calls...) {
		short, isCall := strings.CutSuffix(path, strings.TrimSuffix("/"+call, "/"))
		if isCall && fits(short, base, isDeployment) {
			return short, true
		}
	}
	return "", false
}

// fits reports whether a text is the pattern, with one part in place of its *.
func fits(text, pattern string, part *regexp.Regexp) bool {
	before, after, hasStar := strings.Cut(pattern, "*")
	if !hasStar {
		return text == pattern
	}
	text, begins := strings.CutPrefix(text, before)
	text, ends := strings.CutSuffix(text, after)
	return begins && ends && part.MatchString(text)
}

// keyTime is how long AWS's short-term key is valid. It serves one attempt, which AWS checks at
// its start.
const keyTime = 15 * time.Minute

// bedrockKey returns a short-term Bedrock API key, as AWS's own generators make it: a presigned
// call that is never made. Nothing is asked.
func bedrockKey(ctx context.Context, c aws.Credentials, region string, now time.Time) (secret.Bytes, error) {
	const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	call := fmt.Sprintf("https://bedrock.amazonaws.com/?Action=CallWithBearerToken&X-Amz-Expires=%.0f", keyTime.Seconds())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, call, nil)
	if err != nil {
		return secret.Bytes{}, err
	}
	signed, _, err := v4.NewSigner().PresignHTTP(ctx, c, r, emptyBody, "bedrock", region, now)
	if err != nil {
		return secret.Bytes{}, err
	}
	return secret.New(base64.StdEncoding.AppendEncode([]byte("bedrock-api-key-"), []byte(strings.TrimPrefix(signed, "https://")+"&Version=1"))), nil
}

// served are the calls of envoy.yaml's routes, after /v1/.
var served = []string{"chat/completions", "completions", "embeddings", "messages", "responses"}

var (
	isBase = regexp.MustCompile(`^(/[A-Za-z0-9][A-Za-z0-9._-]*)+(/\*)?$`)
	isHost = regexp.MustCompile(`^([a-z0-9-]+\.)*(\*\.)?([a-z0-9-]+\.)+[a-z0-9-]+$`)
)

// check adds the problems of a provider's paths and document.
func (p *providerConfig) check(name string, all *problems) {
	all.addIf(p.Plain != "" && p.Plain != plainRefused, "providers: %q: plain: must be %s, or left out", name, plainRefused)
	p.Paths.check(name, false, all)
	d := p.Document
	if d == nil {
		return
	}
	isURL, isRegion := d.URL != "" && len(d.Paths) > 0 && len(d.Hosts) > 0, d.Region != "" && len(d.Regions) > 0 && len(d.Hosts) == 1 && strings.Contains(d.Hosts[0], "*")
	all.addIf(d.Key == "" || isURL == isRegion || isURL && d.Region+d.AccessKeyID != "" || isRegion && d.URL != "",
		"providers: %q: document: it needs key, hosts, and either url and paths, or region, regions and one host with a *", name)
	for _, host := range d.Hosts {
		all.addIf(!isHost.MatchString(host), "providers: %q: document: %q is not a host in lower case with two labels behind its *", name, host)
	}
	for _, region := range d.Regions {
		all.addIf(!isLabel.MatchString(region), "providers: %q: document: %q is not one label of a host", name, region)
	}
	d.Paths.check(name, true, all)
}

func (p paths) check(name string, mayHaveStar bool, all *problems) {
	for base, calls := range p {
		all.addIf(!isBase.MatchString(base) || strings.Contains(base, "*") && !mayHaveStar, "providers: %q: %q is not a path such as /openai/v1", name, base)
		for _, call := range calls {
			all.addIf(!slices.Contains(served, call), "providers: %q: %q is not one of %s", name, call, strings.Join(served, ", "))
		}
	}
}
