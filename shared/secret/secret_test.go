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

// forms are the shapes in which a marker could slip out.
func forms() []string {
	return []string{marker, fmt.Sprintf("%x", marker), fmt.Sprintf("%X", marker), fmt.Sprint([]byte(marker))} //nolint:staticcheck // the numbers are the point
}

func mustNotShow(t *testing.T, how, output string) {
	t.Helper()
	for _, form := range forms() {
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
	v1, err := json.Marshal(holder())
	if err != nil || !strings.Contains(string(v1), secret.Redacted) {
		t.Errorf("encoding/json: %s, %v", v1, err)
	}
	mustNotShow(t, "encoding/json", string(v1))

	v2, err := jsonv2.Marshal(holder())
	if err != nil || !strings.Contains(string(v2), secret.Redacted) {
		t.Errorf("json/v2: %s, %v", v2, err)
	}
	mustNotShow(t, "json/v2", string(v2))

	x, err := xml.Marshal(s)
	if err != nil || !strings.Contains(string(x), secret.Redacted) {
		t.Errorf("encoding/xml: %s, %v", x, err)
	}
	mustNotShow(t, "encoding/xml", string(x))

	var g bytes.Buffer
	_ = gob.NewEncoder(&g).Encode(s) // may refuse; must not show
	mustNotShow(t, "encoding/gob", g.String())

	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"slog text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"slog json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var out bytes.Buffer
		slog.New(handler(&out)).Info("x", "secret", s, "pointer", &s, "holder", holder(), slog.Group("g", "s", s))
		mustNotShow(t, name, out.String())
		if !strings.Contains(out.String(), secret.Redacted) {
			t.Errorf("%s: %s", name, out.String())
		}
	}
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
