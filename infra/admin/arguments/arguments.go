// Package arguments reads the arguments of the command line: ids, hashes, durations and
// key ARNs. It also completes words.
package arguments

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/spelling"
)

// Options make kong read the arguments.
func Options() []kong.Option {
	return []kong.Option{
		uuids[ids.Account](), uuids[ids.Workspace](), uuids[ids.Job](), parsed(parseFileID), parsed(parseKeyARN), parsed(ParseLifetime), parsed(parseAge), parsed(parseProvider),
		prefixes[HashPrefix](HashLength, "", errNotHash),
		prefixes[CredentialPrefix](idLength, "-", errNotCredential),
	}
}

const (
	errNotHash       = acts.UsageError("that is not a key's hash: give its 64 hexadecimal digits, or the first 8 or more (`admin key list`)")
	errNotCredential = acts.UsageError("that is not a credential's id: give the UUID, or its first 8 characters or more (`admin credential find`)")
	errEnded         = acts.UsageError("a key cannot expire before it is made")
)

// uuids makes kong read ids, or the beginnings of ids. A command gets whole ids, see IsWhole.
func uuids[ID ~string]() kong.Option {
	return parsed(func(s string) (ID, error) {
		id, ok := ids.Parse[ID](s)
		if start := strings.ToLower(s); !ok && len(s) >= shortest && len(s) < idLength && strings.Trim(start, "0123456789abcdef-") == "" {
			id, ok = ID(start), true
		}
		if !ok {
			return "", fmt.Errorf("%q is not an id: give the UUID, or its first 8 characters or more", s)
		}
		return id, nil
	})
}

const (
	shortest = 8 // of a prefix
	idLength = 36
)

// IsWhole reports whether an id has its full length.
func IsWhole(id string) bool { return len(id) == idLength }

func parseFileID(s string) (ids.File, error) {
	id, ok := ids.ParseFile(s)
	if !ok {
		return "", errors.New(`a file id is "file_" and 1 to 200 of A-Z a-z 0-9 _ -`)
	}
	return id, nil
}

// Lifetime is a duration longer than zero.
type Lifetime time.Duration

// ParseLifetime reads a duration.
func ParseLifetime(s string) (Lifetime, error) {
	d, err := parseDuration(s)
	switch {
	case err != nil:
		return 0, err
	case d <= 0:
		return 0, errEnded
	case d > MaxDays*24*time.Hour:
		return 0, fmt.Errorf("a key lasts at most %dd: omit --expires-in for a key that never expires", MaxDays)
	}
	return Lifetime(d), nil
}

// Age is how long ago something happened.
type Age time.Duration

func parseAge(s string) (Age, error) {
	d, err := parseDuration(s)
	return Age(max(0, d)), err
}

// parseDuration reads whole days, such as 90d, or a duration of time.ParseDuration.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int64
		n, err = strconv.ParseInt(days, 10, 32)
		d = time.Duration(max(0, min(n, MaxDays+1))) * 24 * time.Hour
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: give days (90d), hours (36h) or minutes (45m)", s)
	}
	return d, nil
}

// MaxDays is about a hundred years.
const MaxDays = 36500

func parsed[T any](parse func(string) (T, error)) kong.Option {
	read := func(c *kong.DecodeContext, to reflect.Value) error {
		var s string
		if err := c.Scan.PopValueInto("id", &s); err != nil {
			return err
		}
		value, err := parse(s)
		if err != nil {
			return err
		}
		to.Set(reflect.ValueOf(value))
		return nil
	}
	return kong.TypeMapper(reflect.TypeFor[T](), kong.MapperFunc(read))
}

// AsksForJSON reports whether a command line asks for JSON, even if it has another mistake.
func AsksForJSON(args []string) (asks bool) {
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--json="); ok {
			arg = "--json=" + strings.ToLower(value) // as kong does
		}
		switch arg {
		case "--json", "--json=true", "--json=1", "--json=yes":
			asks = true
		case "--json=false", "--json=0", "--json=no":
			asks = false
		}
	}
	return asks
}

var (
	flagName = regexp.MustCompile(`^--[a-z-]{1,24}(=|$)`)
	harmless = regexp.MustCompile(`^.{0,15}$` + // too short for a key
		`|^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`) // an id
	apiKey = regexp.MustCompile(ids.APIKeyPrefix + `[A-Za-z0-9_-]{8,}`)
)

// Hide removes possible secrets from the message of an error: a user may have typed one
// in the wrong place.
func Hide(err error, message string, args []string) string {
	if acts.Is[*kong.ParseError](err) {
		for _, arg := range args {
			arg = flagName.ReplaceAllString(arg, "")
			if !harmless.MatchString(arg) {
				message = without(message, arg)
			}
		}
	}
	return apiKey.ReplaceAllString(message, "(an API key, not repeated)")
}

// without hides the text that the message shares with the argument. The message may
// repeat a part of the argument, such as an element of a list, with
// %s or %q, and in lower case. Short matches stay, because most are the message's own words.
func without(message, arg string) string {
	const few = 11
	plain := strings.ToLower(arg)
	quoted := strings.ToLower(strings.Trim(strconv.Quote(arg), `"`))
	var b strings.Builder
	for rest := []rune(message); len(rest) > 0; {
		n := 0
		for n < len(rest) {
			shared := strings.ToLower(string(rest[:n+1]))
			if !strings.Contains(plain, shared) && !strings.Contains(quoted, shared) {
				break
			}
			n++
		}
		if n > few {
			b.WriteString("(not repeated)")
		} else {
			n = 1
			b.WriteRune(rest[0])
		}
		rest = rest[n:]
	}
	return b.String()
}

// HashLength is the length of a whole hash.
const HashLength = 64

type (
	// HashPrefix is a key's hash or a prefix of it.
	HashPrefix string
	// CredentialPrefix is a credential's id or a prefix of it.
	CredentialPrefix string
)

// prefixes makes kong read prefixes of hexadecimal texts, in lower case. Its error never
// repeats a wrong value, which may be a key.
func prefixes[T ~string](most int, others string, refusal error) kong.Option {
	return parsed(func(s string) (T, error) {
		s = strings.ToLower(s)
		if len(s) < shortest || len(s) > most || strings.Trim(s, "0123456789abcdef"+others) != "" {
			return "", refusal
		}
		return T(s), nil
	})
}

// Provider is the slug of a provider that credentials may have.
type Provider string

// parseProvider never repeats a wrong value, because it may be a key.
func parseProvider(s string) (Provider, error) {
	if byok.IsProvider(s) {
		return Provider(s), nil
	}
	if near := spelling.Nearest(s, byok.Providers()); near != "" {
		return "", fmt.Errorf("there is no such provider; did you mean %s?", near)
	}
	return "", errors.New("there is no such provider: infra/openapi.yaml lists them")
}

// KeyARN is the ARN of a KMS key. Records keep ARNs, which cannot be compared with an
// alias or a short id.
type KeyARN string

func parseKeyARN(s string) (KeyARN, error) {
	if !regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$`).MatchString(s) {
		return "", errors.New("that is not the ARN of a KMS key (arn:aws:kms:REGION:ACCOUNT:key/ID)")
	}
	return KeyARN(s), nil
}
