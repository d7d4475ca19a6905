package awsmodel_test

import (
	"testing"

	"signalbox.dev/infra/test/kit"
)

// A data key is decrypted under its own key and context only.
func TestKMS(t *testing.T) {
	engines := kit.Start(t)
	own, other := engines.KeyARN, engines.Key(t)
	unknown := own[:len(own)-4] + "ffff"
	fake, real := sides(engines, own, other)
	got, want := kmsResponses(t, fake, own, other, unknown), kmsResponses(t, real, own, other, unknown)
	for what := range want {
		if diff, _ := differ("SIGNALBOX_KMS", what, want[what], got[what]); diff != "" {
			t.Errorf("%s: engine -, model +\n%s", what, diff)
		}
	}
}

func kmsResponses(t *testing.T, s side, own, other, unknown string) map[string]object {
	t.Helper()
	context := object{"purpose": "p", "workspace": "w1"}
	generate := func(arn string) object {
		return s.call(t, "TrentService.GenerateDataKey", object{"KeyId": arn, "KeySpec": "AES_256", "EncryptionContext": context})
	}
	made := generate(own)
	blob, plaintext := made["CiphertextBlob"].(string), made["Plaintext"]
	decrypt := func(arn, blob string, context object) object {
		return s.call(t, "TrentService.Decrypt", object{"KeyId": arn, "CiphertextBlob": blob, "EncryptionContext": context})
	}
	all := map[string]object{
		"made": made, "made under an unknown key": generate(unknown),
		"decrypted": decrypt(own, blob, context), "another key": decrypt(other, blob, context), "an unknown key": decrypt(unknown, blob, context),
		"another context": decrypt(own, blob, object{"purpose": "p", "workspace": "w2"}), "less context": decrypt(own, blob, object{"purpose": "p"}),
		"altered": decrypt(own, altered(blob), context),
	}
	if all["decrypted"]["Plaintext"] != plaintext {
		t.Errorf("it decrypts to %v", all["decrypted"])
	}
	for _, response := range all {
		// The model has one algorithm, and one key material for each key.
		for _, member := range []string{"EncryptionAlgorithm", "KeyMaterialId", "CiphertextForRecipient", "CiphertextBlob", "Plaintext"} {
			delete(response, member)
		}
	}
	return all
}

// altered is a ciphertext with another character near its end.
func altered(blob string) string {
	at, letter := len(blob)-8, "A"
	if blob[at] == 'A' {
		letter = "B"
	}
	return blob[:at] + letter + blob[at+1:]
}
