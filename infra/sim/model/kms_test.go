package model_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// keys are the keys of one side, and the ciphertexts that it has made.
type keys struct {
	testing.TB
	side
	arns  []string
	blobs []string
}

func (k *keys) call(operation string, in object) object {
	out := k.side.call(k, "TrentService."+operation, in)
	if blob, ok := out["CiphertextBlob"].(string); ok {
		k.blobs = append(k.blobs, blob)
		out["CiphertextBlob"] = len(k.blobs)
	}
	if plaintext, ok := out["Plaintext"].(string); ok {
		out["Plaintext"] = len(plaintext)
	}
	for i, arn := range k.arns {
		if out["KeyId"] == arn {
			out["KeyId"] = i
		}
	}
	// The model has one algorithm, and one key material for each key.
	for _, member := range []string{"EncryptionAlgorithm", "KeyMaterialId", "CiphertextForRecipient"} {
		delete(out, member)
	}
	return out
}

// key is the ARN of a key: 0 and 1 exist.
func (k *keys) key(n int) string {
	if n < len(k.arns) {
		return k.arns[n]
	}
	return k.arns[0][:len(k.arns[0])-4] + "ffff"
}

// blob is a ciphertext that was made, or one that was altered near its end.
func (k *keys) blob(n int, altered bool) string {
	blob := k.blobs[n%len(k.blobs)]
	if !altered {
		return blob
	}
	at := len(strings.TrimRight(blob, "=")) - 6
	flipped := "A"
	if blob[at] == 'A' {
		flipped = "B"
	}
	return blob[:at] + flipped + blob[at+1:]
}

// drawKMS generates one request.
func drawKMS(t *rapid.T) (what string, do func(*keys) object) {
	context := oneOf(t, object{"purpose": "p", "workspace": "w1"}, object{"purpose": "p", "workspace": "w1"}, object{"purpose": "p", "workspace": "w2"}, object{"purpose": "p"})
	key, n, altered := oneOf(t, 0, 0, 1, 2), rapid.IntRange(0, 9).Draw(t, "blob"), oneOf(t, false, false, false, true)
	switch kind := oneOf(t, "GenerateDataKey", "GenerateDataKey", "Decrypt", "Decrypt", "Decrypt"); kind {
	case "GenerateDataKey":
		return fmt.Sprint(kind, key, context), func(k *keys) object {
			return k.call(kind, object{"KeyId": k.key(key), "KeySpec": "AES_256", "EncryptionContext": context})
		}
	default:
		return fmt.Sprint(kind, key, context, n, altered), func(k *keys) object {
			return k.call(kind, object{"KeyId": k.key(key), "CiphertextBlob": k.blob(n, altered), "EncryptionContext": context})
		}
	}
}

func TestKMSSequences(t *testing.T) {
	fake, real, engines := sides(t)
	arns := []string{engines.KeyARN, engines.Key(t)}
	rapid.Check(t, func(rt *rapid.T) {
		model, engine := &keys{TB: t, side: fake, arns: []string{keyARN, otherARN}}, &keys{TB: t, side: real, arns: arns}
		for _, k := range []*keys{model, engine} {
			k.call("GenerateDataKey", object{"KeyId": k.arns[0], "KeySpec": "AES_256", "EncryptionContext": object{"purpose": "p"}})
		}
		var done []string
		for range rapid.IntRange(1, 25).Draw(rt, "length") {
			what, do := drawKMS(rt)
			done = append(done, what)
			want, got := do(engine), do(model)
			diff, diverged := differ("SIGNALBOX_KMS", what, want, got)
			if diff != "" {
				rt.Fatalf("%s: engine -, model +\n%s", strings.Join(done, "\n"), diff)
			}
			if diverged {
				return
			}
		}
	})
}
