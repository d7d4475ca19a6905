package seal_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/shared/seal"
)

const nextARN = "arn:aws:kms:us-east-1:000000000000:key/99999999-2222-3333-4444-555555555555"

// twoKMS behaves as KMS does with two keys, the sealing key and the next.
type twoKMS struct {
	keys   map[string]*fixedKMS
	asked  []*kms.ReEncryptInput
	answer func(*kms.ReEncryptOutput) // alters an answer, if set
}

func newTwoKMS() *twoKMS {
	return &twoKMS{keys: map[string]*fixedKMS{keyARN: {}, nextARN: {master: [32]byte{9}}}}
}

func (k *twoKMS) ReEncrypt(_ context.Context, in *kms.ReEncryptInput, _ ...func(*kms.Options)) (*kms.ReEncryptOutput, error) {
	k.asked = append(k.asked, in)
	from, to := k.keys[aws.ToString(in.SourceKeyId)], k.keys[aws.ToString(in.DestinationKeyId)]
	if from == nil || to == nil {
		return nil, &types.NotFoundException{}
	}
	if err := errors.Join(from.fail, to.fail); err != nil {
		return nil, err
	}
	blob := in.CiphertextBlob
	dataKey, err := from.wrap().Open(nil, blob[:12], blob[12:], canonical(in.SourceEncryptionContext))
	if err != nil {
		return nil, &types.InvalidCiphertextException{}
	}
	nonce := bytes.Repeat([]byte{7}, 12)
	out := &kms.ReEncryptOutput{
		SourceKeyId: in.SourceKeyId, KeyId: in.DestinationKeyId,
		CiphertextBlob: to.wrap().Seal(nonce, nonce, dataKey, canonical(in.DestinationEncryptionContext)),
	}
	if k.answer != nil {
		k.answer(out)
	}
	return out, nil
}

func (k *twoKMS) Decrypt(ctx context.Context, in *kms.DecryptInput, o ...func(*kms.Options)) (*kms.DecryptOutput, error) {
	told := *in
	told.KeyId = aws.String(keyARN) // fixedKMS knows itself by that name
	return k.keys[aws.ToString(in.KeyId)].Decrypt(ctx, &told, o...)
}

func TestARewrappedRecordOpensUnderTheOtherKey(t *testing.T) {
	k := newTwoKMS()
	before := mustSeal(t, k.keys[keyARN])
	after, err := seal.NewRewrapper(k, nextARN, "another", keyARN).Rewrap(t.Context(), before, home())
	if err != nil {
		t.Fatal(err)
	}
	want := before
	want.KeyARN, want.WrappedKey = nextARN, after.WrappedKey
	if diff := cmp.Diff(want, after); diff != "" || bytes.Equal(before.WrappedKey, after.WrappedKey) {
		t.Errorf("more or less than the wrapped key changed (-want +got):\n%s", diff)
	}
	for name, record := range map[string]seal.Sealed{"before": before, "after": after} {
		opened, err := seal.NewOpener(k, keyARN, nextARN).Open(t.Context(), record, home())
		if err != nil || string(opened.Reveal()) != plain {
			t.Errorf("%s: opened %q, %v", name, opened.Reveal(), err)
		}
	}
	if _, err := seal.NewOpener(k, keyARN).Open(t.Context(), after, home()); !errors.Is(err, seal.ErrKey) {
		t.Errorf("an opener that does not trust the other key: %v", err)
	}
}

func TestRewrapBindsBothWrappingsAlike(t *testing.T) {
	k := newTwoKMS()
	if _, err := seal.NewRewrapper(k, nextARN, keyARN).Rewrap(t.Context(), mustSeal(t, k.keys[keyARN]), home()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"purpose": "signalbox/credential", "account": string(home().Account), "workspace": string(home().Workspace),
		"credential": string(home().Credential), "provider": home().Provider,
	}
	asked := k.asked[0]
	for name, context := range map[string]map[string]string{"source": asked.SourceEncryptionContext, "destination": asked.DestinationEncryptionContext} {
		if diff := cmp.Diff(want, context); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if aws.ToString(asked.SourceKeyId) != keyARN || aws.ToString(asked.DestinationKeyId) != nextARN {
		t.Errorf("from %s to %s", aws.ToString(asked.SourceKeyId), aws.ToString(asked.DestinationKeyId))
	}
}

func TestARecordUnderTheKeyIsLeftAlone(t *testing.T) {
	k := newTwoKMS()
	before := mustSeal(t, k.keys[keyARN])
	after, err := seal.NewRewrapper(k, keyARN, keyARN).Rewrap(t.Context(), before, home())
	if diff := cmp.Diff(before, after); err != nil || diff != "" || len(k.asked) > 0 {
		t.Errorf("%v, asked KMS %d times (-want +got):\n%s", err, len(k.asked), diff)
	}
}

func TestRewrapNeedsNoSecret(t *testing.T) {
	k := newTwoKMS()
	before := mustSeal(t, k.keys[keyARN])
	bare := seal.Sealed{Format: before.Format, KeyARN: before.KeyARN, WrappedKey: before.WrappedKey}
	after, err := seal.NewRewrapper(k, nextARN, keyARN).Rewrap(t.Context(), bare, home())
	if err != nil || after.Nonce != nil || after.Ciphertext != nil {
		t.Fatalf("%+v, %v", after, err)
	}
	before.KeyARN, before.WrappedKey = after.KeyARN, after.WrappedKey
	if opened, err := seal.NewOpener(k, nextARN).Open(t.Context(), before, home()); err != nil || string(opened.Reveal()) != plain {
		t.Errorf("opened %q, %v", opened.Reveal(), err)
	}
}

func TestWhatDoesNotMove(t *testing.T) {
	for name, c := range map[string]struct {
		record  func(*seal.Sealed)
		binding func(*seal.Binding)
		want    error
		asks    bool
	}{
		"other account":       {binding: func(b *seal.Binding) { b.Account = "x" }, want: seal.ErrDataKey, asks: true},
		"other workspace":     {binding: func(b *seal.Binding) { b.Workspace = "x" }, want: seal.ErrDataKey, asks: true},
		"other credential":    {binding: func(b *seal.Binding) { b.Credential = "x" }, want: seal.ErrDataKey, asks: true},
		"other provider":      {binding: func(b *seal.Binding) { b.Provider = "x" }, want: seal.ErrDataKey, asks: true},
		"wrapped key altered": {record: func(s *seal.Sealed) { s.WrappedKey[20] ^= 1 }, want: seal.ErrDataKey, asks: true},
		"wrapped key gone":    {record: func(s *seal.Sealed) { s.WrappedKey = nil }, want: seal.ErrFormat},
		"no key":              {record: func(s *seal.Sealed) { s.KeyARN = "" }, want: seal.ErrFormat},
		"format 2":            {record: func(s *seal.Sealed) { s.Format = 2 }, want: seal.ErrFormat},
		"key not trusted":     {record: func(s *seal.Sealed) { s.KeyARN = "arn:aws:kms:us-east-1:666666666666:key/6" }, want: seal.ErrKey},
	} {
		k := newTwoKMS()
		record, binding := mustSeal(t, k.keys[keyARN]), home()
		if c.record != nil {
			c.record(&record)
		}
		if c.binding != nil {
			c.binding(&binding)
		}
		after, err := seal.NewRewrapper(k, nextARN, keyARN).Rewrap(t.Context(), record, binding)
		if !errors.Is(err, c.want) || after.WrappedKey != nil || (len(k.asked) > 0) != c.asks {
			t.Errorf("%s: %+v, %v, asked KMS %d times; want %v", name, after, err, len(k.asked), c.want)
		}
	}
}

func TestAnIncompleteBindingIsNotRewrapped(t *testing.T) {
	k := newTwoKMS()
	record, binding := mustSeal(t, k.keys[keyARN]), home()
	binding.Workspace = ""
	if _, err := seal.NewRewrapper(k, nextARN, keyARN).Rewrap(t.Context(), record, binding); err == nil || len(k.asked) > 0 {
		t.Errorf("rewrapped for no workspace: %v", err)
	}
}

func TestAnswersThatAreNotBelieved(t *testing.T) {
	record := mustSeal(t, newTwoKMS().keys[keyARN])
	for name, answer := range map[string]func(*kms.ReEncryptOutput){
		"no wrapped key":   func(o *kms.ReEncryptOutput) { o.CiphertextBlob = nil },
		"same wrapped key": func(o *kms.ReEncryptOutput) { o.CiphertextBlob = record.WrappedKey },
		"no key":           func(o *kms.ReEncryptOutput) { o.KeyId = nil },
		"another key":      func(o *kms.ReEncryptOutput) { o.KeyId = aws.String(keyARN) },
		"no source":        func(o *kms.ReEncryptOutput) { o.SourceKeyId = nil },
		"another source":   func(o *kms.ReEncryptOutput) { o.SourceKeyId = aws.String(nextARN) },
	} {
		k := newTwoKMS()
		k.answer = answer
		if after, err := seal.NewRewrapper(k, nextARN, keyARN).Rewrap(t.Context(), record, home()); err == nil || after.WrappedKey != nil {
			t.Errorf("%s: %+v", name, after)
		}
	}
	for name, at := range map[string]string{"source": keyARN, "destination": nextARN} {
		k := newTwoKMS()
		k.keys[at].fail = errKMS
		if after, err := seal.NewRewrapper(k, nextARN, keyARN).Rewrap(t.Context(), record, home()); !errors.Is(err, errKMS) || after.WrappedKey != nil {
			t.Errorf("%s fails: %+v, %v", name, after, err)
		}
	}
}
