package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
)

// ticket is the part of a request that /open needs: the caller, the model, and the ids of the
// plan's steps. The plan's name contains it, signed, so no authorizer remembers plans: any
// one that has the same keys serves any attempt.
type ticket struct {
	Made   int64       `json:"t"` // in milliseconds since 1970
	Caller ids.KeyHash `json:"c"`
	Model  string      `json:"m"`
	UserID []byte      `json:"u"` // any that a header can carry
	Steps  []stepID    `json:"s"`
	Random [6]byte     `json:"r"` // equal requests have different names, so each keeps its reading
}

// stepID identifies a step within its plan.
type stepID [6]byte

func idOf(s routing.Step) stepID {
	hash := sha256.Sum256([]byte(s.Provider + "\n" + string(s.Credential)))
	return stepID(hash[:])
}

const (
	macSize     = 16 // 128 bits cannot be guessed, and no better attack is known
	nameKeySize = 32
)

var nameCoding = base64.RawURLEncoding.Strict() // one name for each content

// nameKeys sign names: the first signs, all verify.
type nameKeys [][]byte

// newNameKey returns a line for the file of name keys.
func newNameKey() string {
	key := make([]byte, nameKeySize)
	_, _ = rand.Read(key) // it never fails
	return nameCoding.EncodeToString(key)
}

// readNameKeys reads a file with one key a line.
func readNameKeys(file []byte) (keys nameKeys, err error) {
	for line := range bytes.Lines(file) {
		key, err := nameCoding.DecodeString(string(bytes.TrimRight(line, "\r\n")))
		if err != nil || len(key) != nameKeySize {
			return nil, fmt.Errorf("line %d is not a line of `router names-key`", len(keys)+1)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("the file is empty: `router names-key` prints a line for it")
	}
	return keys, nil
}

func mac(key, content []byte) []byte {
	m := hmac.New(sha256.New, key)
	_, _ = m.Write(content) // a hash never fails
	return m.Sum(nil)[:macSize]
}

// sign returns the ticket as the name of a plan: base64 of JSON and its MAC.
func (k nameKeys) sign(t ticket) string {
	_, _ = rand.Read(t.Random[:]) // it never fails
	content, _ := json.Marshal(t) // JSON has a form for each part
	return nameCoding.EncodeToString(append(content, mac(k[0], content)...))
}

// read returns the ticket of a name. There is none if no key has signed the name.
func (k nameKeys) read(name string) (t ticket, ok bool) {
	all, err := nameCoding.DecodeString(name)
	if err != nil || len(all) < macSize {
		return ticket{}, false
	}
	content, signed := all[:len(all)-macSize], all[len(all)-macSize:]
	if !slices.ContainsFunc(k, func(key []byte) bool { return hmac.Equal(signed, mac(key, content)) }) {
		return ticket{}, false
	}
	return t, json.Unmarshal(content, &t, json.RejectUnknownMembers(true)) == nil
}

// readings keeps the readings of plans for their first attempt, while they are fresh and not
// too many. If its reading is lost, an attempt reads the rows again.
type readings struct {
	mu  sync.Mutex
	all map[string]*routing.Reading
}

// mostReadings bounds the memory: a reading holds a sealed key.
const mostReadings = 1000

func (r *readings) keep(name string, reading *routing.Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) >= mostReadings {
		return
	}
	if r.all == nil {
		r.all = make(map[string]*routing.Reading)
	}
	r.all[name] = reading
	time.AfterFunc(byok.ReadTime, func() { r.take(name) })
}

// take returns the plan's reading once, or nil.
func (r *readings) take(name string) *routing.Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	reading := r.all[name]
	delete(r.all, name)
	if reading == nil || !reading.IsFresh() {
		return nil
	}
	return reading
}
