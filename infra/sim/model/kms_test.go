package model_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"signalbox.dev/infra/testkit"
)

// keys are the keys of one side, and the ciphertexts that it has made.
type keys struct {
	testing.TB
	side
	arns  []string
	blobs []any
}

func (k *keys) call(operation string, in object) object {
	out := k.side.call(k, "TrentService."+operation, in)
	if blob, ok := out["CiphertextBlob"]; ok {
		k.blobs = append(k.blobs, blob)
		out["CiphertextBlob"] = len(k.blobs)
	}
	if plaintext, ok := out["Plaintext"].(string); ok {
		bytes, err := base64.StdEncoding.DecodeString(plaintext)
		testkit.Must(k, err)
		out["Plaintext"] = len(bytes)
	}
	for _, member := range []string{"KeyId", "SourceKeyId"} {
		for i, arn := range k.arns {
			if out[member] == arn {
				out[member] = i
			}
		}
	}
	if metadata, ok := out["KeyMetadata"].(object); ok {
		out["KeyMetadata"] = fmt.Sprint(metadata["KeyState"], metadata["Enabled"], metadata["KeySpec"], metadata["DeletionDate"] != nil)
	}
	delete(out, "DeletionDate")
	delete(out, "KeyMaterialId") // of which key material, which the model has one of
	delete(out, "CiphertextForRecipient")
	return out
}

// key is the ARN of a key: 0 and 1 exist.
func (k *keys) key(n int) string {
	if n < len(k.arns) {
		return k.arns[n]
	}
	return k.arns[0][:len(k.arns[0])-4] + "ffff"
}

// blob is a ciphertext that was made, or one that was altered.
func (k *keys) blob(n int, altered bool) any {
	blob := k.blobs[n%len(k.blobs)]
	if altered {
		text := blob.(string)
		last := strings.TrimRight(text, "=")
		flipped := "A"
		if last[len(last)-6] == 'A' {
			flipped = "B"
		}
		return last[:len(last)-6] + flipped + last[len(last)-5:] + text[len(last):]
	}
	return blob
}

// drawKMS generates one request.
func drawKMS(t *rapid.T) (operation string, input func(*keys) object) {
	context := func() object {
		return oneOf(t, object{"purpose": "p", "workspace": "w1"}, object{"purpose": "p", "workspace": "w1"}, object{"purpose": "p", "workspace": "w2"}, object{"purpose": "p"})
	}
	from, to, key, n := context(), context(), oneOf(t, 0, 0, 1, 2), rapid.IntRange(0, 9).Draw(t, "blob")
	altered := oneOf(t, false, false, false, true)
	operations := []string{"GenerateDataKey", "GenerateDataKey", "Decrypt", "Decrypt", "Decrypt", "ReEncrypt", "ReEncrypt", "DescribeKey"}
	if hasStates() {
		operations = append(operations, "DisableKey", "EnableKey", "EnableKey", "ScheduleKeyDeletion", "CancelKeyDeletion", "CancelKeyDeletion")
	}
	operation = oneOf(t, operations...)
	destination := oneOf(t, 0, 1, 2)
	return operation, func(k *keys) object {
		in := object{"KeyId": k.key(key)}
		switch operation {
		case "GenerateDataKey":
			in["KeySpec"], in["EncryptionContext"] = "AES_256", from
		case "Decrypt":
			in["CiphertextBlob"], in["EncryptionContext"] = k.blob(n, altered), from
		case "ReEncrypt":
			return object{
				"SourceKeyId": k.key(key), "DestinationKeyId": k.key(destination), "CiphertextBlob": k.blob(n, altered),
				"SourceEncryptionContext": from, "DestinationEncryptionContext": to,
			}
		case "ScheduleKeyDeletion":
			in["PendingWindowInDays"] = 7
		}
		return in
	}
}

// hasStates reports whether the engine knows the states of keys. moto uses a disabled
// key, and fails to disable one by its ARN.
func hasStates() bool { return engineName("SIGNALBOX_KMS") != "moto" }

func TestKMSSequences(t *testing.T) {
	fake, real, engines := sides(t)
	rapid.Check(t, func(rt *rapid.T) {
		// The keys are used by all runs. Each begins with both of them enabled.
		model, engine := &keys{TB: t, side: fake, arns: []string{keyARN, otherARN}}, &keys{TB: t, side: real, arns: []string{engines.KeyARN, otherKey(t, engines)}}
		for _, k := range []*keys{model, engine} {
			for _, arn := range k.arns {
				if !hasStates() {
					break
				}
				k.call("CancelKeyDeletion", object{"KeyId": arn})
				k.call("EnableKey", object{"KeyId": arn})
			}
			k.call("GenerateDataKey", object{"KeyId": k.arns[0], "KeySpec": "AES_256", "EncryptionContext": object{"purpose": "p"}})
		}
		var done []string
		for range rapid.IntRange(1, 25).Draw(rt, "length") {
			operation, input := drawKMS(rt)
			done = append(done, fmt.Sprint(operation, input(model)))
			want, got := engine.call(operation, input(engine)), model.call(operation, input(model))
			diff, diverged := differ("SIGNALBOX_KMS", operation, nil, want, got)
			if diff != "" {
				rt.Fatalf("%s: engine -, model +\n%s", strings.Join(done, "\n"), diff)
			}
			if diverged {
				return
			}
		}
	})
}

// otherKey is a second key of the engine, made once.
var otherKey = func() func(testing.TB, testkit.Engines) string {
	arn := ""
	return func(t testing.TB, e testkit.Engines) string {
		if arn == "" {
			arn = e.Key(t)
		}
		return arn
	}
}()
