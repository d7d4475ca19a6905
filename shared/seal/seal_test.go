package seal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/google/go-cmp/cmp"

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

func sealed(t *testing.T, k *faultyKMS, text string) seal.Sealed {
	t.Helper()
	record, err := seal.NewSealer(k, keyARN).Seal(t.Context(), secret.New([]byte(text)), home())
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// A rewrap changes the wrapped key alone, and both records open.
func TestWhatIsSealedOpensAtHome(t *testing.T) {
	for _, text := range []string{plain, "k", "", `{"type":"service_account"}` + "\n\x00", strings.Repeat("x", 32768)} {
		k := &faultyKMS{}
		before, twin := sealed(t, k, text), sealed(t, k, text)
		if bytes.Equal(before.Nonce, twin.Nonce) || bytes.Equal(before.WrappedKey, twin.WrappedKey) || bytes.Equal(before.Ciphertext, twin.Ciphertext) {
			t.Error("two seals of one secret share a part")
		}
		if len(text) > 3 && bytes.Contains(fmt.Append(nil, before), []byte(text)) {
			t.Error("the record shows the secret")
		}
		rewrapper := seal.NewRewrapper(k, nextARN, "another", keyARN)
		after, err := rewrapper.Rewrap(t.Context(), before, home())
		want := before
		want.KeyARN, want.WrappedKey = nextARN, after.WrappedKey
		if diff := cmp.Diff(want, after); err != nil || diff != "" || bytes.Equal(before.WrappedKey, after.WrappedKey) {
			t.Errorf("%v, rewrapped (-want +got):\n%s", err, diff)
		}
		for name, record := range map[string]seal.Sealed{"before": before, "after": after} {
			opened, err := seal.NewOpener(k, keyARN, nextARN).Open(t.Context(), record, home())
			if err != nil || string(opened.Reveal()) != text {
				t.Errorf("%s: opened %q, %v; want %q", name, opened.Reveal(), err, text)
			}
		}
		if again, err := rewrapper.Rewrap(t.Context(), after, home()); err != nil || cmp.Diff(after, again) != "" || k.asked != 1 {
			t.Errorf("rewrapped again: %+v, %v after %d calls", again, err, k.asked)
		}
	}
}

// The same records are sealed and opened if Go allows FIPS 140-3 algorithms only.
func TestFIPS140(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", "^(TestWhatIsSealedOpensAtHome|TestAlteredRecords)$") //nolint:gosec // this test
	command.Env = append(os.Environ(), "GODEBUG=fips140=only")
	if out, err := command.CombinedOutput(); err != nil || bytes.Count(out, []byte("--- PASS")) != 2 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAFaultOfKMSIsNeverASecret(t *testing.T) {
	record := sealed(t, &faultyKMS{}, plain)
	broken := &faultyKMS{failing: keyARN}
	if opened, err := seal.NewOpener(broken, keyARN).Open(t.Context(), record, home()); !errors.Is(err, errKMS) || opened.Reveal() != nil {
		t.Errorf("opened %q, %v", opened.Reveal(), err)
	}
	if record, err := seal.NewSealer(broken, keyARN).Seal(t.Context(), secret.New([]byte(plain)), home()); !errors.Is(err, errKMS) || record.Ciphertext != nil {
		t.Errorf("sealed %v, %v", record, err)
	}
	for name, alter := range map[string]func(*kms.GenerateDataKeyOutput){
		"no data key":    func(o *kms.GenerateDataKeyOutput) { o.Plaintext = nil },
		"short data key": func(o *kms.GenerateDataKeyOutput) { o.Plaintext = o.Plaintext[:16] },
		"no wrapped key": func(o *kms.GenerateDataKeyOutput) { o.CiphertextBlob = nil },
		"no key id":      func(o *kms.GenerateDataKeyOutput) { o.KeyId = nil },
		"another key":    func(o *kms.GenerateDataKeyOutput) { o.KeyId = aws.String(keyARN + "0") },
	} {
		sealer := seal.NewSealer(&faultyKMS{generated: alter}, keyARN)
		if record, err := sealer.Seal(t.Context(), secret.New([]byte(plain)), home()); err == nil || record.Ciphertext != nil {
			t.Errorf("%s: sealed %v", name, record)
		}
	}
	for failing, alter := range map[string]func(*kms.ReEncryptOutput){
		"no wrapped key":   func(o *kms.ReEncryptOutput) { o.CiphertextBlob = nil },
		"same wrapped key": func(o *kms.ReEncryptOutput) { o.CiphertextBlob = record.WrappedKey },
		"no key":           func(o *kms.ReEncryptOutput) { o.KeyId = nil },
		"another key":      func(o *kms.ReEncryptOutput) { o.KeyId = aws.String(keyARN) },
		"no source":        func(o *kms.ReEncryptOutput) { o.SourceKeyId = nil },
		"another source":   func(o *kms.ReEncryptOutput) { o.SourceKeyId = aws.String(nextARN) },
		keyARN:             nil,
		nextARN:            nil,
	} {
		k := &faultyKMS{failing: failing, reEncrypted: alter}
		after, err := seal.NewRewrapper(k, nextARN, keyARN).Rewrap(t.Context(), record, home())
		if err == nil || errors.Is(err, errKMS) != (alter == nil) || after.WrappedKey != nil {
			t.Errorf("%s: rewrapped %+v, %v", failing, after, err)
		}
	}
}

// AES would accept a data key of 128 bits.
func TestADataKeyIs256BitsAndWiped(t *testing.T) {
	var keys [][]byte
	k := &faultyKMS{
		generated: func(o *kms.GenerateDataKeyOutput) { keys = append(keys, o.Plaintext) },
		decrypted: func(o *kms.DecryptOutput) { keys = append(keys, o.Plaintext) },
	}
	record := sealed(t, k, plain)
	if _, err := seal.NewOpener(k, keyARN).Open(t.Context(), record, home()); err != nil {
		t.Fatal(err)
	}
	k.decrypted = func(o *kms.DecryptOutput) {
		o.Plaintext = o.Plaintext[:16]
		keys = append(keys, o.Plaintext)
	}
	if opened, err := seal.NewOpener(k, keyARN).Open(t.Context(), record, home()); !errors.Is(err, seal.ErrDataKey) || opened.Reveal() != nil {
		t.Errorf("opened %q, %v", opened.Reveal(), err)
	}
	for i, key := range keys {
		if len(bytes.Trim(key, "\x00")) > 0 {
			t.Errorf("data key %d of %d is not wiped", i+1, len(keys))
		}
	}
}

// vector is a frozen record. Records like these are in customers' tables: it must
// always be possible to open every one.
type vector struct {
	seal.Binding
	seal.Sealed
	Plaintext []byte
}

func flip(b []byte, i int) []byte {
	c := bytes.Clone(b)
	c[i] ^= 1
	return c
}

// Only a frozen record opens, and only at its own place. The right check refuses every
// altered record, if possible without a call to KMS. A rewrap ignores nonce and
// ciphertext.
func TestAlteredRecords(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	var vectors []vector
	if err := errors.Join(err, json.Unmarshal(data, &vectors)); err != nil || len(vectors) < 2 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	check := func(v vector, wantPlain []byte, wantOpen, wantRewrap error) {
		t.Helper()
		k := &faultyKMS{}
		opened, err := seal.NewOpener(k, keyARN, trustedARN).Open(t.Context(), v.Sealed, v.Binding)
		if !errors.Is(kind(err), wantOpen) || !bytes.Equal(opened.Reveal(), wantPlain) {
			t.Errorf("%+v: opened %q, %v; want %v", v, opened.Reveal(), err, wantOpen)
		}
		moved, err := seal.NewRewrapper(k, nextARN, keyARN, trustedARN).Rewrap(t.Context(), v.Sealed, v.Binding)
		asks := errors.Is(wantRewrap, seal.ErrDataKey) || wantRewrap == nil && v.KeyARN != nextARN
		if !errors.Is(kind(err), wantRewrap) || (moved.WrappedKey == nil) != (wantRewrap != nil) || (k.asked > 0) != asks {
			t.Errorf("%+v: rewrapped %+v, %v after %d calls; want %v", v, moved, err, k.asked, wantRewrap)
		}
		_, err = seal.NewSealer(k, keyARN).Seal(t.Context(), secret.New([]byte("k")), v.Binding)
		if (err != nil) != errors.Is(wantOpen, errOther) {
			t.Errorf("%+v: sealed: %v", v, err)
		}
	}
	for _, v := range vectors {
		check(v, v.Plaintext, nil, nil)
	}
	other := vectors[1]
	for _, c := range []struct {
		open, rewrap error
		changes      []func(*vector)
	}{
		{errOther, errOther, []func(*vector){
			func(v *vector) { v.Account = "" },
			func(v *vector) { v.Workspace = "" },
			func(v *vector) { v.Credential = "" },
			func(v *vector) { v.Provider = "" },
		}},
		{seal.ErrFormat, seal.ErrFormat, []func(*vector){
			func(v *vector) { v.Format = 2 },
			func(v *vector) { v.KeyARN = "" },
			func(v *vector) { v.WrappedKey = nil },
		}},
		{seal.ErrKey, seal.ErrKey, []func(*vector){func(v *vector) { v.KeyARN += "0" }}},
		{seal.ErrKey, nil, []func(*vector){func(v *vector) { v.KeyARN = nextARN }}}, // it has that key already
		{seal.ErrDataKey, seal.ErrDataKey, []func(*vector){
			func(v *vector) { v.Account = "x" },
			func(v *vector) { v.Workspace = "x" },
			func(v *vector) { v.Credential = "x" },
			func(v *vector) { v.Provider = "anthropic" },
			func(v *vector) { v.Account, v.Workspace = v.Account+"0", v.Workspace[1:] },
			func(v *vector) { v.KeyARN = trustedARN },
			func(v *vector) { v.WrappedKey = flip(v.WrappedKey, 20) },
		}},
		{seal.ErrCiphertext, nil, []func(*vector){
			func(v *vector) { v.WrappedKey = other.WrappedKey }, // from another record at the same place
			func(v *vector) { v.Nonce = other.Nonce },
			func(v *vector) { v.Nonce = flip(v.Nonce, 0) },
			func(v *vector) { v.Ciphertext = other.Ciphertext },
			func(v *vector) { v.Ciphertext = flip(v.Ciphertext, 0) },
			func(v *vector) { v.Ciphertext = flip(v.Ciphertext, len(v.Ciphertext)-1) },
			func(v *vector) { v.Ciphertext = v.Ciphertext[1:] },
			func(v *vector) { v.Ciphertext = v.Ciphertext[:16] },
		}},
		{seal.ErrFormat, nil, []func(*vector){
			func(v *vector) { v.Nonce = v.Nonce[:11] },
			func(v *vector) { v.Nonce = append(bytes.Clone(v.Nonce), 0) },
			func(v *vector) { v.Ciphertext = v.Ciphertext[:15] },
			func(v *vector) { v.Ciphertext = nil },
		}},
	} {
		for _, change := range c.changes {
			v := vectors[0]
			change(&v)
			check(v, nil, c.open, c.rewrap)
		}
	}
}

// errOther stands for every error that the package does not declare.
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
