package secret_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"

	"signalbox.dev/shared/secret"
)

const marker = "sk-marker-7Hq2"

type nested struct {
	Public  string
	Exposed secret.Bytes
	Pointer *secret.Bytes
	private secret.Bytes
	list    []secret.Bytes
	keyed   map[string]secret.Bytes
}

func holder() nested {
	s := secret.New([]byte(marker))
	return nested{
		Public: "seen", Exposed: s, Pointer: &s, private: s,
		list: []secret.Bytes{s}, keyed: map[string]secret.Bytes{"k": s},
	}
}

// mustNotShow looks for the marker as text, in hexadecimal and in decimal bytes.
func mustNotShow(t *testing.T, how, output string) {
	t.Helper()
	for _, form := range []string{marker, fmt.Sprintf("%x", marker), fmt.Sprintf("%X", marker), fmt.Sprint([]byte(marker))} { //nolint:staticcheck // decimal on purpose
		if strings.Contains(output, strings.Trim(form, "[]")) {
			t.Errorf("%s shows the secret: %s", how, output)
		}
	}
}

func TestNoVerbShowsASecret(t *testing.T) {
	s := secret.New([]byte(marker))
	values := map[string]any{
		"value": s, "pointer": &s, "struct": holder(), "slice": []secret.Bytes{s},
		"any": []any{s}, "map": map[string]secret.Bytes{"k": s},
	}
	for verb := rune('!'); verb <= '~'; verb++ {
		for _, flags := range []string{"", "+", "#", " ", "-40", "040", ".3"} {
			for name, v := range values {
				format := "%" + flags + string(verb)
				mustNotShow(t, name+" under "+format, fmt.Sprintf(format, v))
			}
		}
	}
	if got := fmt.Sprintf("%s %v %+v %#v %q %x %d", s, s, s, s, s, s, s); got != strings.TrimSpace(strings.Repeat(secret.Redacted+" ", 7)) {
		t.Errorf("verbs print %s", got)
	}
}

func TestNoEncoderShowsASecret(t *testing.T) {
	s := secret.New([]byte(marker))
	values := []any{"value", s, "pointer", &s, "holder", holder(), slog.Group("group", "s", s)}
	for name, encode := range map[string]func(*bytes.Buffer) error{
		"encoding/json": func(b *bytes.Buffer) error { return json.NewEncoder(b).Encode(holder()) },
		"json/v2":       func(b *bytes.Buffer) error { return jsonv2.MarshalWrite(b, holder()) },
		"encoding/xml":  func(b *bytes.Buffer) error { return xml.NewEncoder(b).Encode(s) },
		"slog text":     func(b *bytes.Buffer) error { slog.New(slog.NewTextHandler(b, nil)).Info("x", values...); return nil },
		"slog json":     func(b *bytes.Buffer) error { slog.New(slog.NewJSONHandler(b, nil)).Info("x", values...); return nil },
	} {
		var out bytes.Buffer
		if err := encode(&out); err != nil || !strings.Contains(out.String(), secret.Redacted) {
			t.Errorf("%s: %s, %v", name, out.String(), err)
		}
		mustNotShow(t, name, out.String())
	}
	var out bytes.Buffer
	_ = gob.NewEncoder(&out).Encode(s) // it may refuse
	mustNotShow(t, "encoding/gob", out.String())
}

func TestRevealAndWipe(t *testing.T) {
	s := secret.New([]byte(marker))
	other := s
	if got := string(s.Reveal()); got != marker {
		t.Fatalf("Reveal() = %q", got)
	}
	s.Wipe()
	if got := other.Reveal(); !bytes.Equal(got, make([]byte, len(marker))) {
		t.Errorf("after Wipe a copy still reveals %q", got)
	}
	var zero secret.Bytes
	zero.Wipe()
	if got := zero.Reveal(); got != nil {
		t.Errorf("the zero value reveals %q", got)
	}
}
