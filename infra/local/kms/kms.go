// Package kms is a fake AWS KMS for one machine, because there is none to embed. It encrypts,
// authenticates encryption contexts, and refuses to use a disabled key, with AWS's errors.
// It has no key policies, grants, IAM, deletion, signatures of requests or asymmetric keys.
//
// Its state is one file. It is replaced as a whole and flushed before an answer is sent: a
// kill -9 loses no acknowledged change. The file holds the keys in clear, so it is only for
// a developer's machine.
package kms

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"

	"signalbox.dev/infra/local/state"
)

// The region and the account in the ARNs of the keys.
const (
	Region  = "us-east-1"
	Account = "000000000000"
)

// The states of a key.
const (
	enabled  = "Enabled"
	disabled = "Disabled"
)

// key is a symmetric key.
type key struct {
	ID       string
	State    string
	Created  time.Time
	Material []byte
}

const arnPrefix = "arn:aws:kms:" + Region + ":" + Account + ":key/"

func (k key) arn() string { return arnPrefix + k.ID }

// Service is a running fake KMS.
type Service struct {
	file string // "" keeps nothing

	mu   sync.Mutex
	keys keys
}

// keys is the content of the file.
type keys struct{ Keys map[string]key }

// New returns a Service in memory with these keys. Each has the hash of its ARN for its material,
// so that a test can freeze what it encrypted.
func New(arns ...string) *Service {
	s := &Service{keys: keys{map[string]key{}}}
	for _, arn := range arns {
		id, material := strings.TrimPrefix(arn, arnPrefix), sha256.Sum256([]byte(arn))
		s.keys.Keys[id] = key{ID: id, State: enabled, Created: time.Now().UTC(), Material: material[:]}
	}
	return s
}

// Open loads the keys of the folder. It makes the folder if it does not exist.
func Open(dir string) (*Service, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the keys: %w", err)
	}
	s := &Service{file: filepath.Join(dir, "keys.json")}
	exists, err := state.Read(s.file, &s.keys, s.check)
	if !exists {
		s.keys.Keys = make(map[string]key)
	}
	return s, err
}

// check refuses keys that no Service has written.
func (s *Service) check() error {
	if s.keys.Keys == nil {
		return errors.New("the keys are missing")
	}
	for id, k := range s.keys.Keys {
		if k.ID != id || len(k.Material) != 32 {
			return fmt.Errorf("key %s is incomplete", id)
		}
	}
	return nil
}

// put stores a new key, or a key's new state, before the answer is sent. If it fails,
// nothing has changed.
func (s *Service) put(k key) error {
	changed := keys{maps.Clone(s.keys.Keys)}
	changed.Keys[k.ID] = k
	if s.file != "" {
		if err := state.Write(s.file, changed); err != nil {
			return err
		}
	}
	s.keys = changed
	return nil
}

// find returns a key by its id or its ARN.
func (s *Service) find(name string) (key, error) {
	if name == "" {
		return key{}, fault("ValidationException", "A key must be named")
	}
	k, ok := s.keys.Keys[strings.TrimPrefix(name, arnPrefix)]
	if !ok {
		return key{}, fault("NotFoundException", "Key '%s' does not exist", name)
	}
	return k, nil
}

// usable finds a key that may encrypt and decrypt.
func (s *Service) usable(name string) (key, error) {
	k, err := s.find(name)
	if err == nil && k.State != enabled {
		err = fault("DisabledException", "%s is disabled.", k.arn())
	}
	return k, err
}

func fault(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...)}
}
