package seal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

const plain = "sk-marker-0123456789"

func home() seal.Binding {
	return seal.Binding{
		Account:    "0a1b2c3d-0000-4000-8000-000000000001",
		Workspace:  "0a1b2c3d-0000-4000-8000-000000000002",
		Credential: "0a1b2c3d-0000-4000-8000-000000000003",
		Provider:   "anthropic/2",
	}
}

func mustSeal(t *testing.T, k *fixedKMS) seal.Sealed {
	t.Helper()
	sealed, err := seal.NewSealer(k, keyARN).Seal(t.Context(), secret.New([]byte(plain)), home())
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestWhatIsSealedOpensAtHome(t *testing.T) {
	k := &fixedKMS{}
	for _, text := range []string{plain, "k", "", `{"type":"service_account"}` + "\n\x00", strings.Repeat("x", 32768)} {
		sealed, err := seal.NewSealer(k, keyARN).Seal(t.Context(), secret.New([]byte(text)), home())
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 3 && bytes.Contains(fmt.Append(nil, sealed), []byte(text)) {
			t.Error("the record shows the secret")
		}
		opened, err := seal.NewOpener(k, "another", keyARN).Open(t.Context(), sealed, home())
		if err != nil || string(opened.Reveal()) != text {
			t.Errorf("opened %q, %v; want %q", opened.Reveal(), err, text)
		}
	}
}

func TestNothingRepeats(t *testing.T) {
	k := &fixedKMS{}
	a, b := mustSeal(t, k), mustSeal(t, k)
	if bytes.Equal(a.Nonce, b.Nonce) || bytes.Equal(a.WrappedKey, b.WrappedKey) || bytes.Equal(a.Ciphertext, b.Ciphertext) {
		t.Error("two seals of one secret share a part")
	}
}

func TestAMovedOrAlteredRecordOpensNowhere(t *testing.T) {
	k := &fixedKMS{}
	other := mustSeal(t, k)
	moved := func(change func(*seal.Binding)) seal.Binding {
		b := home()
		change(&b)
		return b
	}
	altered := func(change func(*seal.Sealed)) func(seal.Sealed) seal.Sealed {
		return func(s seal.Sealed) seal.Sealed { change(&s); return s }
	}
	flip := func(b []byte, i int) []byte {
		c := bytes.Clone(b)
		c[i] ^= 1
		return c
	}
	cases := map[string]struct {
		binding seal.Binding
		record  func(seal.Sealed) seal.Sealed
		want    error
	}{
		"other account":        {moved(func(b *seal.Binding) { b.Account = "x" }), nil, seal.ErrDataKey},
		"other workspace":      {moved(func(b *seal.Binding) { b.Workspace = "x" }), nil, seal.ErrDataKey},
		"other credential":     {moved(func(b *seal.Binding) { b.Credential = "x" }), nil, seal.ErrDataKey},
		"other provider":       {moved(func(b *seal.Binding) { b.Provider = "anthropic" }), nil, seal.ErrDataKey},
		"format 0":             {home(), altered(func(s *seal.Sealed) { s.Format = 0 }), seal.ErrFormat},
		"format 2":             {home(), altered(func(s *seal.Sealed) { s.Format = 2 }), seal.ErrFormat},
		"no key":               {home(), altered(func(s *seal.Sealed) { s.KeyARN = "" }), seal.ErrFormat},
		"key not trusted":      {home(), altered(func(s *seal.Sealed) { s.KeyARN = keyARN + "0" }), seal.ErrKey},
		"key not KMS's":        {home(), altered(func(s *seal.Sealed) { s.KeyARN = "trusted" }), seal.ErrDataKey},
		"wrapped key altered":  {home(), altered(func(s *seal.Sealed) { s.WrappedKey = flip(s.WrappedKey, 20) }), seal.ErrDataKey},
		"wrapped key cut":      {home(), altered(func(s *seal.Sealed) { s.WrappedKey = s.WrappedKey[:30] }), seal.ErrDataKey},
		"wrapped key gone":     {home(), altered(func(s *seal.Sealed) { s.WrappedKey = nil }), seal.ErrFormat},
		"wrapped key swapped":  {home(), altered(func(s *seal.Sealed) { s.WrappedKey = other.WrappedKey }), seal.ErrCiphertext},
		"nonce altered":        {home(), altered(func(s *seal.Sealed) { s.Nonce = flip(s.Nonce, 0) }), seal.ErrCiphertext},
		"nonce cut":            {home(), altered(func(s *seal.Sealed) { s.Nonce = s.Nonce[:11] }), seal.ErrFormat},
		"nonce long":           {home(), altered(func(s *seal.Sealed) { s.Nonce = append(bytes.Clone(s.Nonce), 0) }), seal.ErrFormat},
		"ciphertext altered":   {home(), altered(func(s *seal.Sealed) { s.Ciphertext = flip(s.Ciphertext, 0) }), seal.ErrCiphertext},
		"tag altered":          {home(), altered(func(s *seal.Sealed) { s.Ciphertext = flip(s.Ciphertext, len(s.Ciphertext)-1) }), seal.ErrCiphertext},
		"ciphertext cut":       {home(), altered(func(s *seal.Sealed) { s.Ciphertext = s.Ciphertext[1:] }), seal.ErrCiphertext},
		"ciphertext only tag":  {home(), altered(func(s *seal.Sealed) { s.Ciphertext = s.Ciphertext[:16] }), seal.ErrCiphertext},
		"ciphertext too short": {home(), altered(func(s *seal.Sealed) { s.Ciphertext = s.Ciphertext[:15] }), seal.ErrFormat},
		"ciphertext gone":      {home(), altered(func(s *seal.Sealed) { s.Ciphertext = nil }), seal.ErrFormat},
		"ciphertext of other":  {home(), altered(func(s *seal.Sealed) { s.Ciphertext = other.Ciphertext }), seal.ErrCiphertext},
		"everything of no one": {home(), altered(func(s *seal.Sealed) { *s = seal.Sealed{} }), seal.ErrFormat},
	}
	opener := seal.NewOpener(k, keyARN, "trusted")
	for name, c := range cases {
		record := mustSeal(t, k)
		if c.record != nil {
			record = c.record(record)
		}
		opened, err := opener.Open(t.Context(), record, c.binding)
		if !errors.Is(err, c.want) || opened.Reveal() != nil {
			t.Errorf("%s: %q, %v; want %v", name, opened.Reveal(), err, c.want)
		}
	}
}

// The associated data bind the secret even where KMS would not check its context.
func TestTheCiphertextIsBoundByItself(t *testing.T) {
	k := &fixedKMS{}
	record := mustSeal(t, k)
	blind := blindKMS{fixedKMS: k, context: home()}
	for name, binding := range map[string]seal.Binding{
		"moved":        {Account: home().Account, Workspace: home().Workspace, Credential: "x", Provider: home().Provider},
		"run together": {Account: home().Account + "0", Workspace: home().Workspace[1:], Credential: home().Credential, Provider: home().Provider},
	} {
		if _, err := seal.NewOpener(blind, keyARN).Open(t.Context(), record, binding); !errors.Is(err, seal.ErrCiphertext) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := seal.NewOpener(blind, keyARN).Open(t.Context(), record, home()); err != nil {
		t.Errorf("at home: %v", err)
	}
}

func TestAFaultOfKMSIsNeverASecret(t *testing.T) {
	k := &fixedKMS{}
	record := mustSeal(t, k)
	k.fail = errKMS
	if opened, err := seal.NewOpener(k, keyARN).Open(t.Context(), record, home()); !errors.Is(err, errKMS) || opened.Reveal() != nil {
		t.Errorf("opened %q, %v", opened.Reveal(), err)
	}
	if sealed, err := seal.NewSealer(k, keyARN).Seal(t.Context(), secret.New([]byte(plain)), home()); !errors.Is(err, errKMS) || sealed.Ciphertext != nil {
		t.Errorf("sealed %v, %v", sealed, err)
	}
	for name, answer := range map[string]func(*kms.GenerateDataKeyOutput){
		"no data key":    func(o *kms.GenerateDataKeyOutput) { o.Plaintext = nil },
		"short data key": func(o *kms.GenerateDataKeyOutput) { o.Plaintext = o.Plaintext[:16] },
		"no wrapped key": func(o *kms.GenerateDataKeyOutput) { o.CiphertextBlob = nil },
		"no key id":      func(o *kms.GenerateDataKeyOutput) { o.KeyId = nil },
		"another key":    func(o *kms.GenerateDataKeyOutput) { o.KeyId = aws.String(keyARN + "0") },
	} {
		sealer := seal.NewSealer(&fixedKMS{answer: answer}, keyARN)
		if sealed, err := sealer.Seal(t.Context(), secret.New([]byte(plain)), home()); err == nil || sealed.Ciphertext != nil {
			t.Errorf("%s: sealed %v", name, sealed)
		}
	}
}

func TestAnIncompleteBindingIsRefused(t *testing.T) {
	k := &fixedKMS{}
	record := mustSeal(t, k)
	for name, change := range map[string]func(*seal.Binding){
		"account":    func(b *seal.Binding) { b.Account = "" },
		"workspace":  func(b *seal.Binding) { b.Workspace = "" },
		"credential": func(b *seal.Binding) { b.Credential = "" },
		"provider":   func(b *seal.Binding) { b.Provider = "" },
	} {
		b := home()
		change(&b)
		if _, err := seal.NewSealer(k, keyARN).Seal(t.Context(), secret.New([]byte(plain)), b); err == nil {
			t.Errorf("sealed without %s", name)
		}
		if _, err := seal.NewOpener(k, keyARN).Open(t.Context(), record, b); err == nil || errors.Is(err, seal.ErrDataKey) {
			t.Errorf("without %s KMS was asked to open it: %v", name, err)
		}
	}
}
