package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/secret"
)

// config is the configuration file, with the files that it names. router.yaml explains
// each field.
type config struct {
	Listen         string                     `yaml:"listen"`
	NameKeysFile   string                     `yaml:"name_keys_file"`
	Stack          stack                      `yaml:"stack"`
	UserIDHeader   string                     `yaml:"user_id_header"`
	OutageStatus   int                        `yaml:"outage_status"`
	MaxBodyBytes   int64                      `yaml:"max_body_bytes"`
	MaxConnections int                        `yaml:"max_connections"`
	PlanAge        time.Duration              `yaml:"plan_age"`
	Models         map[string][]string        `yaml:"models"`
	Providers      map[string]*providerConfig `yaml:"providers"`

	nameKeys nameKeys
}

// stack has the names of the stack's outputs.
type stack struct {
	AccessTable      string `yaml:"AccessTableName"`
	CredentialsTable string `yaml:"CredentialsTableName"`
	SealingKey       string `yaml:"SealingKeyArn"`
	OtherSealingKey  string `yaml:"OtherSealingKeyArn"`
}

// providerConfig is the header for a provider's key, and the targets that the key may have.
type providerConfig struct {
	Header   string    `yaml:"header"`
	KeyFile  string    `yaml:"key_file"`
	Paths    paths     `yaml:"paths"`
	Plain    string    `yaml:"plain"`
	Document *document `yaml:"document"`

	key secret.Bytes // the platform's; empty without a KeyFile
}

// readConfig reads the file, and the files that it names. Its error lists all problems.
func readConfig(file string) (config, error) {
	c, err := readSettings(file)
	if c.Listen == "" && err != nil { // it is no configuration
		return c, err
	}
	return c, errors.Join(err, c.readSecrets())
}

// readSettings reads the file alone. Its error lists all its problems.
func readSettings(file string) (config, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the operator's own choice
	if err != nil {
		return config{}, err
	}
	c := config{OutageStatus: http.StatusServiceUnavailable, MaxBodyBytes: 4 << 20, MaxConnections: 1024, PlanAge: time.Hour}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		return config{}, err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return config{}, errors.New("it holds more than one YAML document")
	}
	return c, c.check()
}

var (
	keyARN     = regexp.MustCompile(`^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[^/]+$`)
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
)

type problems []error

func (p *problems) addIf(isWrong bool, format string, args ...any) {
	if isWrong {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// check completes the configuration and returns its problems, in the same order each time.
func (c *config) check() error {
	var all problems
	_, err := c.address()
	all.addIf(err != nil, "listen: %v", err)
	all.addIf(c.Stack.AccessTable == "", "stack: AccessTableName is missing")
	all.addIf(c.Stack.CredentialsTable == "", "stack: CredentialsTableName is missing")
	all.addIf(c.Stack.SealingKey == "", "stack: SealingKeyArn is missing")
	for _, arn := range c.Stack.sealingKeys() {
		all.addIf(!keyARN.MatchString(arn), "stack: %q is not the ARN of a KMS key: KMS answers with the key's, never an alias's", arn)
	}
	all.addIf(c.MaxBodyBytes < 1, "max_body_bytes: must be positive")
	all.addIf(c.MaxConnections < 1, "max_connections: must be positive")
	all.addIf(c.OutageStatus < 400 || c.OutageStatus > 599, "outage_status: must be 400 to 599")
	all.addIf(c.PlanAge <= 0, "plan_age: must be positive")
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		all.addIf(!byok.IsProvider(name), "providers: %q is not a provider of the API", name)
		p := c.Providers[name]
		if p == nil {
			p = new(providerConfig)
			c.Providers[name] = p
		}
		p.Header = http.CanonicalHeaderKey(cmp.Or(p.Header, bearerHeader))
		all.addIf(!headerName.MatchString(p.Header), "providers: %q: header: %q is not a header's name", name, p.Header)
		p.check(name, &all)
	}
	all.addIf(len(c.Models) == 0, "models: at least one is needed")
	for _, model := range slices.Sorted(maps.Keys(c.Models)) {
		all.addIf(len(c.Models[model]) == 0, "models: %q has no providers", model)
		for _, name := range c.Models[model] {
			all.addIf(c.Providers[name] == nil, "models: %q names the provider %q, which is not under providers", model, name)
		}
	}
	return errors.Join(all...)
}

// readSecrets reads the files that the configuration names.
func (c *config) readSecrets() error {
	var all problems
	err := c.readNameKeys()
	all.addIf(err != nil, "name_keys_file: %v", err)
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		err := c.Providers[name].readKey()
		all.addIf(err != nil, "providers: %q: key_file: %v", name, err)
	}
	return errors.Join(all...)
}

// bearerHeader is the default header for a key. It has "Bearer " before the key, and no other
// header has anything there.
const bearerHeader = "Authorization"

// plainRefused is the setting for a provider that has no host for all tenants.
const plainRefused = "refuse"

func (c *config) readNameKeys() error {
	text, err := os.ReadFile(c.NameKeysFile)
	if err != nil {
		return err
	}
	defer clear(text)
	c.nameKeys, err = readNameKeys(text)
	return err
}

// readKey reads the platform's key. A line break at its end is left out.
func (p *providerConfig) readKey() error {
	if p.KeyFile == "" {
		return nil
	}
	text, err := os.ReadFile(p.KeyFile)
	if err != nil {
		return err
	}
	p.key = secret.New(bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")))
	if !byok.FormOf(p.key.Reveal()).FitsHeader() {
		p.key.Wipe()
		return errors.New("the file does not hold one key that a header can carry")
	}
	return nil
}

// address is an address as package net names it.
type address struct{ network, name string }

// address is the address to listen on, a Unix socket or a loopback address: a client that
// reaches the authorizer can get provider keys, so only this machine may.
func (c config) address() (address, error) {
	if path, ok := strings.CutPrefix(c.Listen, "unix:"); ok && path != "" {
		return address{"unix", path}, nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return address{}, errors.New("an address such as 127.0.0.1:9180, or unix: and a path, is needed")
	}
	if !net.ParseIP(host).IsLoopback() {
		return address{}, errors.New("the authorizer gives out provider keys and listens on a loopback address or a Unix socket only")
	}
	return address{"tcp", c.Listen}, nil
}

// readAddress returns the configured address. Other problems of the file do not matter: the
// file may have changed since the authorizer started, and that one serves on.
func readAddress(file string) (address, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the operator's own choice
	if err != nil {
		return address{}, err
	}
	var c struct {
		Listen string `yaml:"listen"`
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return address{}, err
	}
	return config{Listen: c.Listen}.address()
}

func (s stack) sealingKeys() []string {
	return slices.DeleteFunc([]string{s.SealingKey, s.OtherSealingKey}, func(arn string) bool { return arn == "" })
}
