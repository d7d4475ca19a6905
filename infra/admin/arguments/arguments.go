// Package arguments is what the command line's arguments look like: ids, hashes,
// durations and key ARNs, and the completion of its words.
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

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/shared/ids"
)

// Options have kong read the arguments.
func Options() []kong.Option {
	return []kong.Option{
		uuids[ids.Account](), uuids[ids.Workspace](), uuids[ids.Job](), uuids[ids.Credential](), fileIDs(),
		parsed(parseKeyARN), parsed(ParseLifetime), parsed(parseHashPrefix), parsed(parseCallerHash),
	}
}

const (
	errShortHash     = exit.UsageError("the key's hash is too short: give at least 8 characters of it")
	errNotHash       = exit.UsageError("that is not a key's hash: it has 64 hexadecimal characters, or give the first 8 or more (`admin key list`)")
	errNotCallerHash = exit.UsageError("that is not an API key's hash: give all its 64 digits, in lower case (`admin key list`)")

	// ErrEnded refuses a key that would expire before it is made.
	ErrEnded = exit.UsageError("a key cannot expire before it is made")
)

// uuids has kong read the ids of one kind.
func uuids[ID ~string]() kong.Option {
	return parsed(func(s string) (ID, error) {
		id, ok := ids.Parse[ID](s)
		if !ok {
			return "", fmt.Errorf("%q is not an id (a UUID)", s)
		}
		return id, nil
	})
}

// fileIDs has kong read file ids.
func fileIDs() kong.Option {
	return parsed(func(s string) (ids.File, error) {
		id, ok := ids.ParseFile(s)
		if !ok {
			return "", errors.New(`a file id is "file_" and 1 to 200 of A-Z a-z 0-9 _ -`)
		}
		return id, nil
	})
}

// Lifetime is how long something lasts, longer than no time.
type Lifetime time.Duration

// ParseLifetime reads whole days, such as 90d, or what time.ParseDuration reads.
func ParseLifetime(s string) (Lifetime, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int64
		n, err = strconv.ParseInt(days, 10, 32)
		d = time.Duration(max(0, min(n, MaxDays+1))) * 24 * time.Hour
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: give days (90d), hours (36h) or minutes (45m)", s)
	}
	switch {
	case d <= 0:
		return 0, ErrEnded
	case d > MaxDays*24*time.Hour:
		return 0, fmt.Errorf("a key lasts at most %dd: leave --expires-in out for one that never expires", MaxDays)
	}
	return Lifetime(d), nil
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

const (
	// HashLength is the length of a whole hash.
	HashLength = 64
	leastHash  = 8
)

// HashPrefix is a key's hash, or the beginning of it, in lower case.
type HashPrefix string

// parseHashPrefix never repeats what it refuses, which may be a key.
func parseHashPrefix(s string) (HashPrefix, error) {
	s = strings.ToLower(s)
	switch {
	case len(s) > HashLength || strings.Trim(s, "0123456789abcdef") != "":
		return "", errNotHash
	case len(s) < leastHash:
		return "", errShortHash
	}
	return HashPrefix(s), nil
}

// CallerHash is the whole hash of an API key, in lower case.
type CallerHash string

// parseCallerHash never repeats what it refuses, which may be a key.
func parseCallerHash(s string) (CallerHash, error) {
	if len(s) != HashLength || strings.Trim(s, "0123456789abcdef") != "" {
		return "", errNotCallerHash
	}
	return CallerHash(s), nil
}

// KeyARN is the ARN of a KMS key. Records keep ARNs, so that no alias or short
// id can be compared with them.
type KeyARN string

func parseKeyARN(s string) (KeyARN, error) {
	if !regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$`).MatchString(s) {
		return "", fmt.Errorf("%q is not the ARN of a KMS key (arn:aws:kms:REGION:ACCOUNT:key/ID)", s)
	}
	return KeyARN(s), nil
}
