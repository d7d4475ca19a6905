package seal_test

import (
	"bytes"
	"errors"
	"testing"

	"signalbox.dev/shared/seal"
)

// trustedARN is a key that the opener trusts and KMS does not have.
const trustedARN = "trusted"

// Whatever becomes of a record and of the place where it stands: nothing but the
// original opens, at home, and every other is refused by the check that is due.
// The originals are frozen, so that all workers mutate the same ones.
func FuzzOpen(f *testing.F) {
	vectors := readVectors(f)
	add := func(v vector) {
		f.Add(v.Format, v.KeyARN, v.WrappedKey, v.Nonce, v.Ciphertext, v.Account, v.Workspace, v.Credential, v.Provider)
	}
	for _, v := range vectors {
		add(v)
	}
	for _, change := range []func(*vector){
		func(v *vector) { v.Format = 2 },
		func(v *vector) { v.KeyARN = trustedARN },
		func(v *vector) { v.KeyARN += "0" },
		func(v *vector) { v.WrappedKey = vectors[1].WrappedKey },
		func(v *vector) { v.Nonce = vectors[1].Nonce },
		func(v *vector) { v.Nonce = v.Nonce[:11] },
		func(v *vector) { v.Ciphertext = vectors[1].Ciphertext },
		func(v *vector) { v.Ciphertext = v.Ciphertext[:15] },
		func(v *vector) { v.Account, v.Workspace = v.Account+v.Workspace[:1], v.Workspace[1:] },
		func(v *vector) { v.Provider = "" },
	} {
		v := vectors[0]
		change(&v)
		add(v)
	}
	opener := seal.NewOpener(&fixedKMS{}, keyARN, trustedARN)
	f.Fuzz(func(t *testing.T, format int, arn string, wrapped, nonce, ciphertext []byte, account, workspace, credential, provider string) {
		v := vector{
			Format: format, KeyARN: arn, WrappedKey: wrapped, Nonce: nonce, Ciphertext: ciphertext,
			Account: account, Workspace: workspace, Credential: credential, Provider: provider,
		}
		opened, err := opener.Open(t.Context(), v.record(), v.binding())
		plain, want := verdict(vectors, v)
		if !errors.Is(kind(err), want) || !bytes.Equal(opened.Reveal(), plain) {
			t.Fatalf("opened %q, %v; want %q, %v", opened.Reveal(), err, plain, want)
		}
	})
}

// errOther stands for every error that is none of the package's own.
var errOther = errors.New("another error")

// kind is the check that an error speaks of; nil where there is none.
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

// verdict is what must become of a record, by comparison with the originals
// alone: none of them has an empty secret.
func verdict(originals []vector, v vector) (plain []byte, err error) {
	switch {
	case v.Account == "", v.Workspace == "", v.Credential == "", v.Provider == "":
		return nil, errOther
	case v.Format != 1, v.KeyARN == "", len(v.WrappedKey) == 0, len(v.Nonce) != 12, len(v.Ciphertext) < 16:
		return nil, seal.ErrFormat
	case v.KeyARN != keyARN && v.KeyARN != trustedARN:
		return nil, seal.ErrKey
	}
	for _, o := range originals {
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
