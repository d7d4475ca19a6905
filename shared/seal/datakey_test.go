package seal_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/shared/seal"
)

// KMS gives a key of 256 bits or what it gives is not ours to use; a shorter one
// would be taken for a key of AES-128.
func TestADataKeyOfAnotherSizeOpensNothing(t *testing.T) {
	k := &fixedKMS{}
	record := mustSeal(t, k)
	k.opened = func(o *kms.DecryptOutput) { o.Plaintext = o.Plaintext[:16] }
	if opened, err := seal.NewOpener(k, keyARN).Open(t.Context(), record, home()); !errors.Is(err, seal.ErrDataKey) || opened.Reveal() != nil {
		t.Errorf("opened %q, %v", opened.Reveal(), err)
	}
}

func TestDataKeysAreWiped(t *testing.T) {
	var keys [][]byte
	k := &fixedKMS{
		answer: func(o *kms.GenerateDataKeyOutput) { keys = append(keys, o.Plaintext) },
		opened: func(o *kms.DecryptOutput) { keys = append(keys, o.Plaintext) },
	}
	record := mustSeal(t, k)
	if _, err := seal.NewOpener(k, keyARN).Open(t.Context(), record, home()); err != nil {
		t.Fatal(err)
	}
	k.opened = func(o *kms.DecryptOutput) {
		o.Plaintext = o.Plaintext[:16]
		keys = append(keys, o.Plaintext)
	}
	if _, err := seal.NewOpener(k, keyARN).Open(t.Context(), record, home()); err == nil {
		t.Error("half a data key opened the record")
	}
	for i, key := range keys {
		if len(bytes.Trim(key, "\x00")) > 0 {
			t.Errorf("data key %d of %d is still there", i+1, len(keys))
		}
	}
}
