package seal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

// trustedARN is a key that the opener trusts and KMS does not have.
const trustedARN = "trusted"

// vector is a frozen record. Records like these are in customers' tables: every one
// must keep opening. infra/interop reads the data key, which KMS unwraps.
type vector struct {
	Format                                   int
	Account, Workspace, Credential, Provider string
	KeyARN                                   string
	WrappedKey, Nonce, Ciphertext            []byte
	Plaintext                                []byte
}

func (v vector) binding() seal.Binding {
	return seal.Binding{
		Account: ids.Account(v.Account), Workspace: ids.Workspace(v.Workspace),
		Credential: ids.Credential(v.Credential), Provider: v.Provider,
	}
}

func (v vector) record() seal.Sealed {
	return seal.Sealed{Format: v.Format, KeyARN: v.KeyARN, WrappedKey: v.WrappedKey, Nonce: v.Nonce, Ciphertext: v.Ciphertext}
}

func flip(b []byte, i int) []byte {
	c := bytes.Clone(b)
	c[i] ^= 1
	return c
}

// FuzzOpen opens, rewraps and seals under altered records and bindings. Only a frozen
// record opens, and only at its own place. The right check refuses every other record.
// A rewrap ignores nonce and ciphertext.
func FuzzOpen(f *testing.F) {
	data, err := os.ReadFile("testdata/vectors.json")
	var vectors []vector
	if err := errors.Join(err, json.Unmarshal(data, &vectors)); err != nil || len(vectors) < 2 {
		f.Fatalf("%d vectors, %v", len(vectors), err)
	}
	add := func(v vector) {
		f.Add(v.Format, v.KeyARN, v.WrappedKey, v.Nonce, v.Ciphertext, v.Account, v.Workspace, v.Credential, v.Provider)
	}
	for _, v := range vectors {
		add(v)
	}
	for _, change := range []func(*vector){
		func(v *vector) { v.Account = "x" },
		func(v *vector) { v.Workspace = "x" },
		func(v *vector) { v.Credential = "x" },
		func(v *vector) { v.Provider = "anthropic" },
		func(v *vector) { v.Account, v.Workspace = v.Account+v.Workspace[:1], v.Workspace[1:] },
		func(v *vector) { v.Account = "" },
		func(v *vector) { v.Workspace = "" },
		func(v *vector) { v.Credential = "" },
		func(v *vector) { v.Provider = "" },
		func(v *vector) { v.Format = 2 },
		func(v *vector) { v.KeyARN = "" },
		func(v *vector) { v.KeyARN = trustedARN },
		func(v *vector) { v.KeyARN = nextARN },
		func(v *vector) { v.KeyARN += "0" },
		func(v *vector) { v.WrappedKey = vectors[1].WrappedKey },
		func(v *vector) { v.WrappedKey = flip(v.WrappedKey, 20) },
		func(v *vector) { v.WrappedKey = nil },
		func(v *vector) { v.Nonce = vectors[1].Nonce },
		func(v *vector) { v.Nonce = flip(v.Nonce, 0) },
		func(v *vector) { v.Nonce = v.Nonce[:11] },
		func(v *vector) { v.Nonce = append(bytes.Clone(v.Nonce), 0) },
		func(v *vector) { v.Ciphertext = vectors[1].Ciphertext },
		func(v *vector) { v.Ciphertext = flip(v.Ciphertext, 0) },
		func(v *vector) { v.Ciphertext = flip(v.Ciphertext, len(v.Ciphertext)-1) },
		func(v *vector) { v.Ciphertext = v.Ciphertext[1:] },
		func(v *vector) { v.Ciphertext = v.Ciphertext[:16] },
		func(v *vector) { v.Ciphertext = v.Ciphertext[:15] },
		func(v *vector) { v.Ciphertext = nil },
	} {
		v := vectors[0]
		change(&v)
		add(v)
	}
	f.Fuzz(func(t *testing.T, format int, arn string, wrapped, nonce, ciphertext []byte, account, workspace, credential, provider string) {
		v := vector{
			Format: format, KeyARN: arn, WrappedKey: wrapped, Nonce: nonce, Ciphertext: ciphertext,
			Account: account, Workspace: workspace, Credential: credential, Provider: provider,
		}
		k := &fakeKMS{}
		opened, err := seal.NewOpener(k, keyARN, trustedARN).Open(t.Context(), v.record(), v.binding())
		plain, want := wantOpened(vectors, v)
		if !errors.Is(kind(err), want) || !bytes.Equal(opened.Reveal(), plain) {
			t.Fatalf("opened %q, %v; want %q, %v", opened.Reveal(), err, plain, want)
		}
		moved, err := seal.NewRewrapper(k, nextARN, keyARN, trustedARN).Rewrap(t.Context(), v.record(), v.binding())
		v.Nonce, v.Ciphertext = make([]byte, 12), make([]byte, 16)
		_, want = wantOpened(vectors, v)
		asks := errors.Is(want, seal.ErrDataKey) || errors.Is(want, seal.ErrCiphertext)
		if errors.Is(want, seal.ErrCiphertext) || errors.Is(want, seal.ErrKey) && arn == nextARN {
			want = nil
		}
		if !errors.Is(kind(err), want) || (moved.WrappedKey == nil) != (want != nil) || (len(k.reEncrypts) > 0) != asks {
			t.Fatalf("rewrapped %+v, %v after %d calls; want %v", moved, err, len(k.reEncrypts), want)
		}
		_, err = seal.NewSealer(k, keyARN).Seal(t.Context(), secret.New([]byte("k")), v.binding())
		if incomplete := account == "" || workspace == "" || credential == "" || provider == ""; (err != nil) != incomplete {
			t.Fatalf("sealed for %+v: %v", v.binding(), err)
		}
	})
}

// errOther stands for every error that is none of the package's own.
var errOther = errors.New("another error")

// kind returns the package's error that err wraps, or nil.
func kind(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{seal.ErrFormat, seal.ErrKey, seal.ErrDataKey, seal.ErrCiphertext} {
		if errors.Is(err, known) {
			return known
		}
	}
	return errOther
}

// wantOpened compares a record with the frozen ones. None has an empty secret.
func wantOpened(frozen []vector, v vector) (plain []byte, err error) {
	switch {
	case v.Account == "", v.Workspace == "", v.Credential == "", v.Provider == "":
		return nil, errOther
	case v.Format != 1, v.KeyARN == "", len(v.WrappedKey) == 0, len(v.Nonce) != 12, len(v.Ciphertext) < 16:
		return nil, seal.ErrFormat
	case v.KeyARN != keyARN && v.KeyARN != trustedARN:
		return nil, seal.ErrKey
	}
	for _, o := range frozen {
		if v.KeyARN != keyARN || v.binding() != o.binding() || !bytes.Equal(v.WrappedKey, o.WrappedKey) {
			continue
		}
		if bytes.Equal(v.Nonce, o.Nonce) && bytes.Equal(v.Ciphertext, o.Ciphertext) {
			return o.Plaintext, nil
		}
		return nil, seal.ErrCiphertext
	}
	return nil, seal.ErrDataKey
}
