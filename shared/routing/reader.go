package routing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

var (
	// ErrManagementKey means that the API key is for administration and cannot route
	// requests.
	ErrManagementKey = errors.New("a management key cannot route requests")
	// ErrNoWorkspace means that the key's workspace is deleted, or that the key is
	// bound to none and its account has no default: the request is refused.
	ErrNoWorkspace = auth.ErrNoWorkspace
	// ErrTooMany means that the workspace's credentials take more than one page of a Query,
	// 1 MB. A retry does not help.
	ErrTooMany = byok.ErrTooMany
	// ErrUnavailable means that DynamoDB or KMS did not respond, or that the KMS key is
	// disabled or deleted. A retry may succeed.
	ErrUnavailable = errors.New("stored credentials are unavailable")
)

type tables interface {
	calls.ItemGetter
	dynamodb.QueryAPIClient
}

type decrypter interface {
	Decrypt(context.Context, *kms.DecryptInput, ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

// ownTables and ownKMS make calls under the reader's own rules, with any client:
// jittered retries, a second call beside one that is late, and no empty or malformed
// responses. An empty response to Query would be read as a workspace without credentials.
type (
	ownTables struct {
		tables
		retryer aws.Retryer
		late    late
	}
	ownKMS struct {
		decrypter
		retryer aws.Retryer
	}
)

func (o ownTables) rules(options *dynamodb.Options) {
	options.Retryer = o.retryer
	options.APIOptions = append(options.APIOptions, calls.RefuseMalformed)
}

func (o ownTables) GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	options = append(options, o.rules)
	return firstOf(ctx, o.late, func(ctx context.Context) (*dynamodb.GetItemOutput, error) {
		return o.tables.GetItem(ctx, in, options...)
	})
}

func (o ownTables) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	options = append(options, o.rules)
	return firstOf(ctx, o.late, func(ctx context.Context) (*dynamodb.QueryOutput, error) { return o.tables.Query(ctx, in, options...) })
}

// Decrypt makes one call after the other, each with more time: an answer that comes second is a
// data key that nobody would wipe.
func (o ownKMS) Decrypt(ctx context.Context, in *kms.DecryptInput, options ...func(*kms.Options)) (*kms.DecryptOutput, error) {
	return o.decrypter.Decrypt(ctx, in, append(options, func(options *kms.Options) {
		options.Retryer = o.retryer
		options.APIOptions = append(options.APIOptions, calls.RefuseMalformed, calls.BoundAttempts(2*lateAfter))
	})...)
}

const (
	// lateAfter is when a call is late: its connection may hang, or the service may be slow.
	lateAfter = 800 * time.Millisecond
	// callTime bounds a call. It ends before the reading does, so the error names service and host.
	callTime = byok.ReadTime - 50*time.Millisecond
	// mostSeconds bounds second calls. Some connections may hang, but twice the calls would make a
	// slow service slower.
	mostSeconds = 16
)

// late makes calls that may be late.
type late struct {
	seconds slots
	// idle takes calls to goroutines that wait for one. A new goroutine would first have to grow
	// its stack for the SDK, which took a tenth of the authorizer's CPU.
	idle chan func()
}

// begin makes the call on another goroutine.
func (l late) begin(call func()) {
	select {
	case l.idle <- call:
	default:
		go func() {
			for {
				call()
				select {
				case call = <-l.idle:
				case <-time.After(byok.ReadTime):
					return
				}
			}
		}()
	}
}

// firstOf makes a call, and if it is late the same call beside it. The first success counts. The
// other call goes on, for callTime at most: it would take its connection with it, and a
// service that is slow already would have to make new ones.
func firstOf[V any](ctx context.Context, l late, call func(context.Context) (V, error)) (value V, err error) {
	answers := make(chan calls.Result[V], 2)
	attempt := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		defer cancel()
		answers <- calls.ResultOf(safely(ctx, call))
	}
	l.begin(attempt)
	isLate := time.NewTimer(lateAfter)
	defer isLate.Stop()
	for pending := 1; pending > 0; {
		select {
		case <-isLate.C:
			select {
			case l.seconds <- struct{}{}:
				pending++
				l.begin(func() { defer func() { <-l.seconds }(); attempt() })
			default:
			}
		case answer := <-answers:
			if answer.Err == nil {
				return answer.Value, nil
			}
			pending--
			err = answer.Err
		case <-ctx.Done():
			return value, cmp.Or(err, ctx.Err())
		}
	}
	return value, err
}

// Config names the tables and keys of a stack.
type Config struct {
	AccessTable      string
	CredentialsTable string
	// SealingKeyARNs are the KMS keys that are trusted: the stack's sealing key and,
	// while credentials are being rewrapped, the other one.
	SealingKeyARNs []string
}

// Reader reads the credentials of a workspace for each request and opens their
// keys. It is safe for concurrent use; Close it after use.
//
// A changed row takes effect at the next request: a kept key saves only the call to KMS;
// every request reads the row. During an outage of KMS those keys stay usable for the
// rest of their 60 seconds.
type Reader struct {
	accessTable      string
	credentialsTable string
	tables           tables
	workspaces       *auth.Workspaces
	opener           *seal.Opener
	opened           *cache
	guesses          guesses

	callers  *paced[ids.KeyHash, auth.Caller]
	defaults *paced[auth.Caller, ids.Workspace]
	contents *paced[ownedWorkspace, contents]
}

// NewReader returns an error if the configuration is incomplete.
func NewReader(db tables, decrypter decrypter, c Config) (*Reader, error) {
	if c.AccessTable == "" || c.CredentialsTable == "" || len(c.SealingKeyARNs) == 0 {
		return nil, errors.New("a reader needs both tables and the ARN of a sealing key")
	}
	db = ownTables{db, calls.Retryer(), late{make(slots, mostSeconds), make(chan func())}}
	r := &Reader{
		accessTable: c.AccessTable, credentialsTable: c.CredentialsTable, tables: db, workspaces: auth.NewWorkspaces(db, c.AccessTable),
		opener: seal.NewOpener(ownKMS{decrypter, calls.Retryer()}, c.SealingKeyARNs...), opened: newCache(mostOpened),
		guesses: guesses{all: make(bounded[ids.KeyHash, identity])},
	}
	all := make(slots, mostReads)
	r.callers = newPaced(all, auth.NewVerifier(db, c.AccessTable).Verify)
	r.defaults = newPaced(all, r.workspaces.Default)
	r.contents = newPaidPaced(all, paidFrom(newBudget(), r.readContents))
	return r, nil
}

// Close wipes every kept key. If a request waits for a key, that key is wiped once the
// request has it. The Reader can be used afterwards.
func (r *Reader) Close() { r.opened.clear() }

// Probe reads both tables, for nobody. Its error is of the table that it names.
func (r *Reader) Probe(ctx context.Context) (table string, err error) {
	const nobody = "probe"
	_, err = r.Identify(ctx, auth.HashKey(nobody))
	if _, isRead := errors.AsType[*auth.Rejection](err); !isRead { // no key has this hash
		return r.accessTable, err
	}
	_, err = byok.ReadAll(ctx, r.tables, r.credentialsTable, nobody, nobody)
	return r.credentialsTable, err
}

// Kept is the number of opened keys in memory.
func (r *Reader) Kept() int { return r.opened.size() }

// Reading is a plan together with the sealed keys that it names.
type Reading struct {
	Plan
	Account   ids.Account
	Workspace ids.Workspace // the one that the API key is bound to, or else its account's default

	reader *Reader
	begun  time.Time
	sealed map[Step]byok.Stored // only for the steps of the plan
}

// Read finds who calls by the hash of the API key, and plans a request of that caller. It
// reads the key, the workspace and its credentials strongly consistent, in parallel if it has
// seen the key before, and opens nothing. It sets the request's APIKeyHash.
//
// The error is an *auth.Rejection, ErrManagementKey, ErrNoWorkspace, ErrTooMany,
// ErrUnavailable, or a *calls.Damage of the account, the workspace or one of its credentials: that
// row may forbid what the others allow, so there is no plan, and a retry does not help.
func (r *Reader) Read(ctx context.Context, hash ids.KeyHash, request Request) (*Reading, error) {
	begun := time.Now()
	read, err := r.look(ctx, hash)
	if err != nil {
		return nil, r.refused(hash, err)
	}
	request.APIKeyHash = hash
	credentials := make([]byok.Credential, len(read.credentials))
	for i, s := range read.credentials {
		credentials[i] = s.Credential
	}
	reading := &Reading{
		Plan: NewPlan(credentials, request), Account: read.caller.Account(), Workspace: read.workspace,
		reader: r, begun: begun, sealed: make(map[Step]byok.Stored),
	}
	for _, s := range read.credentials {
		if step := (Step{s.Provider, s.ID}); slices.Contains(reading.Steps, step) {
			reading.sealed[step] = s
		}
	}
	return reading, nil
}

// First returns what an attempt at the first step needs, without the other keys: it takes
// little memory. The plan must have a step.
func (r *Reading) First() *Reading {
	first := *r
	first.Plan, first.sealed = Plan{Steps: r.Steps[:1:1]}, make(map[Step]byok.Stored)
	if sealed, ok := r.sealed[r.Steps[0]]; ok {
		first.sealed[r.Steps[0]] = sealed
	}
	return &first
}

// IsFresh reports whether the rows may still serve a first attempt.
func (r *Reading) IsFresh() bool { return time.Since(r.begun) <= byok.ReadTime }

// Open returns the provider key of a step of this reading, when its turn has come. The
// caller wipes the key after use. The error is ErrUnavailable, or an error of package
// seal if the record can never be opened here. The key is never empty.
func (r *Reading) Open(ctx context.Context, step Step) (secret.Bytes, error) {
	sealed, ok := r.sealed[step]
	if !ok {
		return secret.Bytes{}, errors.New("the step is not in this plan, or uses the shared endpoint")
	}
	return r.reader.opened.get(ctx, keyOf(sealed), func(ctx context.Context) (secret.Bytes, error) {
		plain, err := r.reader.opener.Open(ctx, sealed.Sealed, sealed.Binding())
		switch {
		case err != nil && !isPermanent(err):
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		case err == nil && len(plain.Reveal()) == 0:
			err = fmt.Errorf("%w: it holds no key", seal.ErrCiphertext)
		}
		return plain, err
	})
}

func isPermanent(err error) bool {
	return errors.Is(err, seal.ErrFormat) || errors.Is(err, seal.ErrKey) || errors.Is(err, seal.ErrDataKey) || errors.Is(err, seal.ErrCiphertext)
}
