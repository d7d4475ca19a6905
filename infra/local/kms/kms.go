// Package kms is a fake AWS KMS for one machine, because there is none to embed. It encrypts,
// authenticates encryption contexts, and implements the states of a key with AWS's errors
// for each. It has no key policies, grants, IAM, signatures of requests or asymmetric
// keys.
//
// Its state is one file. It is replaced as a whole and flushed before an answer is sent: a
// kill -9 loses no acknowledged change. The file holds the keys in clear, so it is only for
// a developer's machine.
package kms

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"signalbox.dev/infra/local/damage"
)

// The region and the account in the ARNs of the keys.
const (
	Region  = "us-east-1"
	Account = "000000000000"
)

// The states of a key.
const (
	enabled         = "Enabled"
	disabled        = "Disabled"
	pendingDeletion = "PendingDeletion"
)

// key is a symmetric key. A file of an earlier version may have several materials: each
// opens its ciphertexts.
type key struct {
	ID       string
	State    string
	Created  time.Time
	Material [][]byte
}

func (k key) arn() string { return "arn:aws:kms:" + Region + ":" + Account + ":key/" + k.ID }

// Service is a running fake KMS.
type Service struct {
	file string

	mu    sync.Mutex
	state state
}

type state struct{ Keys map[string]key }

// Open loads the keys of the folder. It makes the folder if it does not exist.
func Open(dir string) (*Service, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the keys: %w", err)
	}
	s := &Service{file: filepath.Join(dir, "keys.json"), state: state{map[string]key{}}}
	data, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}
	err = json.Unmarshal(data, &s.state)
	if err == nil {
		err = s.state.check()
	}
	if err != nil {
		return nil, &damage.Error{Err: fmt.Errorf("reading the keys in %s: %w", s.file, err)}
	}
	return s, nil
}

// check refuses a state that no Service has written.
func (s state) check() error {
	if s.Keys == nil {
		return errors.New("the keys are missing")
	}
	for id, k := range s.Keys {
		if k.ID != id || len(k.Material) == 0 {
			return fmt.Errorf("key %s is incomplete", id)
		}
	}
	return nil
}

// put stores a new key, or a key's new state, before the answer is sent. If it fails,
// nothing has changed.
func (s *Service) put(k key) error {
	changed := state{maps.Clone(s.state.Keys)}
	changed.Keys[k.ID] = k
	data, err := json.Marshal(changed)
	if err == nil {
		err = renameio.WriteFile(s.file, data, 0o600)
	}
	if err == nil {
		s.state = changed
	}
	return err
}

// find returns a key by its id or its ARN.
func (s *Service) find(name string) (key, error) {
	if name == "" {
		return key{}, fault("ValidationException", "A key must be named")
	}
	k, ok := s.state.Keys[strings.TrimPrefix(name, "arn:aws:kms:"+Region+":"+Account+":key/")]
	if !ok {
		return key{}, fault("NotFoundException", "Key '%s' does not exist", name)
	}
	return k, nil
}

// usable finds a key that may encrypt and decrypt.
func (s *Service) usable(name string) (key, error) {
	k, err := s.find(name)
	switch {
	case err == nil && k.State == disabled:
		err = fault("DisabledException", "%s is disabled.", k.arn())
	case err == nil && k.State == pendingDeletion:
		err = fault("KMSInvalidStateException", "%s is pending deletion.", k.arn())
	}
	return k, err
}

// awsError is an error that AWS would give.
type awsError struct{ code, message string }

func (e *awsError) Error() string { return e.code + ": " + e.message }

func fault(code, format string, args ...any) error {
	return &awsError{code: code, message: fmt.Sprintf(format, args...)}
}
