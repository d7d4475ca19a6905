package routing

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

var (
	// ErrNoWorkspace means that the account has no such workspace, or that it is
	// deleted: a request for it is refused.
	ErrNoWorkspace = auth.ErrNoWorkspace
	// ErrUnreadable means that the workspace or one of its credentials is stored in a
	// form that cannot be read. No plan is made without it, since it may forbid what
	// the others allow; another attempt does not help.
	ErrUnreadable = byok.ErrUnreadable
	// ErrUnavailable means that DynamoDB or KMS could not be asked, or that the KMS
	// key is disabled or gone. Another attempt may succeed.
	ErrUnavailable = errors.New("stored credentials are unavailable")
)

type tables interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

type decrypter interface {
	Decrypt(context.Context, *kms.DecryptInput, ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

// Config names what a Reader reads. All of it but Keys is required.
type Config struct {
	AccessTable      string
	CredentialsTable string
	// SealingKeyARNs are the KMS keys that are trusted: the stack's sealing key and,
	// while credentials are being rewrapped, the other one.
	SealingKeyARNs []string
	// Keys is how many opened provider keys stay in memory, each for 60 seconds at
	// most. 0 means 1,000; less than 0 keeps none. Those that requests are waiting
	// for come on top.
	Keys int
}

const defaultKeys = 1000

// Reader reads the credentials of a workspace for each request and opens their
// keys. It is safe for concurrent use; Close it after use.
//
// What a row says takes effect at the next request: only the KMS call is saved by
// keeping opened keys, never the look at the row. A KMS outage leaves those keys
// usable for the rest of their 60 seconds.
type Reader struct {
	config     Config
	tables     tables
	workspaces *auth.Workspaces
	opener     *seal.Opener
	keys       *cache
}

// NewReader returns an error where the configuration is incomplete.
func NewReader(db tables, keys decrypter, c Config) (*Reader, error) {
	if c.AccessTable == "" || c.CredentialsTable == "" || len(c.SealingKeyARNs) == 0 {
		return nil, errors.New("a reader needs both tables and the ARN of a sealing key")
	}
	if c.Keys == 0 {
		c.Keys = defaultKeys
	}
	return &Reader{
		config: c, tables: db,
		workspaces: auth.NewWorkspaces(db, c.AccessTable),
		opener:     seal.NewOpener(keys, c.SealingKeyARNs...),
		keys:       newCache(c.Keys),
	}, nil
}

// Close wipes every key that is kept; one that a request is waiting for, when the
// request has it. The Reader can be used afterwards.
func (r *Reader) Close() { r.keys.clear() }

// Reading is a plan together with the sealed keys that it names.
type Reading struct {
	Plan
	reader *Reader
	stored map[ids.Credential]byok.Stored
}

// Read plans a request of a workspace of the account from what is stored now. It
// reads the workspace and its credentials side by side, strongly consistent, and
// opens nothing. It returns ErrNoWorkspace, ErrUnreadable or ErrUnavailable.
func (r *Reader) Read(ctx context.Context, account ids.Account, w ids.Workspace, request Request) (*Reading, error) {
	var (
		stored                  []byok.Stored
		workspaceErr, storedErr error
		group                   sync.WaitGroup
	)
	group.Go(func() {
		var found auth.Found
		if found, workspaceErr = r.workspaces.Find(ctx, w); workspaceErr != nil {
			return
		}
		workspaceErr = found.LiveIn(account)
		if workspaceErr != nil && !errors.Is(workspaceErr, ErrNoWorkspace) {
			workspaceErr = fmt.Errorf("%w: %w", ErrUnreadable, workspaceErr)
		}
	})
	stored, storedErr = byok.ReadAll(ctx, r.tables, r.config.CredentialsTable, account, w)
	group.Wait()
	// Of a workspace that is not the account's nothing else is said.
	for _, err := range []error{workspaceErr, storedErr} {
		switch {
		case errors.Is(err, ErrNoWorkspace), errors.Is(err, ErrUnreadable):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	reading := &Reading{reader: r, stored: make(map[ids.Credential]byok.Stored, len(stored))}
	credentials := make([]byok.Credential, len(stored))
	for i, s := range stored {
		credentials[i] = s.Credential
		reading.stored[s.ID] = s
	}
	reading.Plan = NewPlan(credentials, request)
	return reading, nil
}

// Open returns the provider key of a step when its turn has come. The caller wipes
// it after use. It returns ErrUnavailable, or an error of package seal where the
// record will never open here; never an empty key.
func (r *Reading) Open(ctx context.Context, step Step) (secret.Bytes, error) {
	stored, ok := r.stored[step.Credential]
	if !ok || step.IsShared() {
		return secret.Bytes{}, errors.New("the step names no credential of this reading")
	}
	return r.reader.keys.get(ctx, keyOf(stored), func(ctx context.Context) (secret.Bytes, error) {
		plain, err := r.reader.opener.Open(ctx, stored.Sealed, stored.Binding())
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
	for _, permanent := range []error{seal.ErrFormat, seal.ErrKey, seal.ErrDataKey, seal.ErrCiphertext} {
		if errors.Is(err, permanent) {
			return true
		}
	}
	return false
}
