package awsmodel_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"signalbox.dev/infra/test/kit"
)

// keys are the keys of one side, with the inputs that decrypt its data keys.
type keys struct {
	testing.TB
	side

	made []object
}

// call sends a request, and hides the random parts of the response.
func (k *keys) call(operation string, in object) object {
	out := k.side.call(k, "TrentService."+operation, in)
	if out["CiphertextBlob"] != nil {
		k.made = append(k.made, object{"KeyId": in["KeyId"], "CiphertextBlob": out["CiphertextBlob"], "EncryptionContext": in["EncryptionContext"]})
		out["CiphertextBlob"] = len(k.made)
	}
	if plaintext, ok := out["Plaintext"].(string); ok {
		out["Plaintext"] = len(plaintext)
	}
	// The model has one algorithm, and one key material for each key.
	for _, member := range []string{"EncryptionAlgorithm", "KeyMaterialId", "CiphertextForRecipient"} {
		delete(out, member)
	}
	return out
}

// altered is a ciphertext with another character near its end.
func altered(blob string) string {
	at := len(blob) - 8
	if blob[at] == 'A' {
		return blob[:at] + "B" + blob[at+1:]
	}
	return blob[:at] + "A" + blob[at+1:]
}

func TestKMSSequences(t *testing.T) {
	engines := kit.Start(t)
	arns := []string{engines.KeyARN, engines.Key(t)}
	unknown := arns[0][:len(arns[0])-4] + "ffff"
	fake, real := sides(engines, arns...)
	compare(t, "SIGNALBOX_KMS", func(rt *rapid.T) (_, _ *keys, draw func() (string, func(*keys) object)) {
		return &keys{TB: t, side: fake}, &keys{TB: t, side: real}, func() (string, func(*keys) object) {
			arn, context := oneOf(rt, arns[0], arns[1], unknown), oneOf(rt, object{"purpose": "p", "workspace": "w1"}, object{"purpose": "p", "workspace": "w2"}, object{"purpose": "p"})
			n, kind := rapid.IntRange(0, 9).Draw(rt, "ciphertext"), oneOf(rt, "GenerateDataKey", "Decrypt", "another key", "another context", "altered")
			return kind, func(k *keys) object {
				if kind == "GenerateDataKey" || len(k.made) == 0 {
					return k.call("GenerateDataKey", object{"KeyId": arn, "KeySpec": "AES_256", "EncryptionContext": context})
				}
				in := maps.Clone(k.made[n%len(k.made)])
				switch kind {
				case "another key":
					in["KeyId"] = arn
				case "another context":
					in["EncryptionContext"] = context
				case "altered":
					in["CiphertextBlob"] = altered(in["CiphertextBlob"].(string))
				}
				return k.call("Decrypt", in)
			}
		}
	})
}
