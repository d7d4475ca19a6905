package ledger

import (
	"context"
	"crypto/md5" //nolint:gosec // what S3 calls ETag
	"encoding/hex"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// Report is what an audit found.
type Report struct {
	// Acknowledged, Refused and Uncertain count credentials and files by what was
	// said of them last.
	Acknowledged, Refused, Uncertain int
	// Opened counts the credentials whose seal was opened.
	Opened int
	// Broken are the promises that were not kept.
	Broken []string
}

// row is a stored credential, in the documented layout (package byok).
type row struct {
	Account   ids.Account    `dynamodbav:"account"`
	Workspace ids.Workspace  `dynamodbav:"workspace"`
	ID        ids.Credential `dynamodbav:"id"`
	Provider  string         `dynamodbav:"provider"`
	Name      string         `dynamodbav:"name"`
	SortOrder int64          `dynamodbav:"sort_order"`
	Seal      struct {
		Format     int    `dynamodbav:"format"`
		KeyARN     string `dynamodbav:"key_arn"`
		WrappedKey []byte `dynamodbav:"wrapped_key"`
		Nonce      []byte `dynamodbav:"nonce"`
		Ciphertext []byte `dynamodbav:"ciphertext"`
	} `dynamodbav:"seal"`
}

// Audit compares the ledger with storage. No client may be writing.
func (l *Ledger) Audit(ctx context.Context, stack *testkit.Stack) (Report, error) {
	stored, err := rows(ctx, stack)
	if err != nil {
		return Report{}, err
	}
	kept, err := objects(ctx, stack)
	if err != nil {
		return Report{}, err
	}
	opened, err := l.open(ctx, stack, stored)
	if err != nil {
		return Report{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	report := Report{Opened: opened}
	l.auditOrders(&report, stored)
	l.auditFiles(&report, kept)
	report.Broken = l.broken
	return report, nil
}

// rows are all stored credentials.
func rows(ctx context.Context, stack *testkit.Stack) ([]row, error) {
	var all []row
	pages := dynamodb.NewScanPaginator(stack.DynamoDB, &dynamodb.ScanInput{
		TableName: &stack.Credentials, ConsistentRead: aws.Bool(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading credentials: %w", err)
		}
		var some []row
		if err := attributevalue.UnmarshalListOfMaps(page.Items, &some); err != nil {
			return nil, fmt.Errorf("decoding credentials: %w", err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// openers bounds how many seals are opened side by side.
const openers = 8

// open opens every stored credential: it must hold what was asked for, at home.
func (l *Ledger) open(ctx context.Context, stack *testkit.Stack, stored []row) (int, error) {
	opener := seal.NewOpener(stack.KMS, stack.SealingKey)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(openers)
	for _, r := range stored {
		group.Go(func() error {
			binding := seal.Binding{Account: l.account, Workspace: r.Workspace, Credential: r.ID, Provider: r.Provider}
			plain, err := opener.Open(ctx, seal.Sealed(r.Seal), binding)
			if err != nil {
				l.Breach("%s does not open: %v", r.Name, err)
				return ctx.Err()
			}
			defer plain.Wipe()
			want := (&Order{Name: r.Name}).Secret()
			if string(plain.Reveal()) != want {
				l.Breach("%s holds another key than was sent", r.Name)
			}
			return nil
		})
	}
	return len(stored), group.Wait()
}

func (l *Ledger) auditOrders(report *Report, stored []row) {
	byName := make(map[string][]row)
	type place struct {
		workspace ids.Workspace
		provider  string
		position  int64
	}
	taken := make(map[place]string)
	for _, r := range stored {
		byName[r.Name] = append(byName[r.Name], r)
		if l.orders[r.Name] == nil {
			l.breach("%s is stored and was never asked for", r.Name)
		}
		p := place{r.Workspace, r.Provider, r.SortOrder}
		if other, ok := taken[p]; ok {
			l.breach("%s and %s share position %d", other, r.Name, r.SortOrder)
		}
		taken[p] = r.Name
	}
	for _, o := range l.orders {
		switch {
		case o.given != nil:
			report.Acknowledged++
		case o.uncertain > 0:
			report.Uncertain++
		default:
			report.Refused++
		}
		l.auditOrder(o, byName[o.Name])
	}
}

// auditOrder holds what is stored of one order to what was said of it.
func (l *Ledger) auditOrder(o *Order, stored []row) {
	switch {
	case len(stored) > 1:
		l.breach("%s is stored %d times", o.Name, len(stored))
	case len(stored) == 1 && (o.Forbidden || o.given == nil && o.uncertain == 0):
		l.breach("%s was refused and is stored", o.Name)
	case len(stored) == 0 && o.given != nil:
		l.breach("%s was acknowledged and is lost", o.Name)
	case o.given != nil:
		c, err := o.given.Credential()
		r := stored[0]
		if err != nil || c.ID != string(r.ID) || c.Workspace != string(r.Workspace) || c.Provider != r.Provider || c.SortOrder != r.SortOrder {
			l.breach("%s is stored otherwise than was said: %s", o.Name, o.given.Body)
		}
	}
}

// object is what the bucket holds of one key.
type object struct {
	etag     string // of the current version
	versions int    // of its bytes
}

func objects(ctx context.Context, stack *testkit.Stack) (map[string]object, error) {
	all := make(map[string]object)
	pages := s3.NewListObjectVersionsPaginator(stack.S3, &s3.ListObjectVersionsInput{Bucket: &stack.Files})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the bucket: %w", err)
		}
		for _, v := range page.Versions {
			o := all[aws.ToString(v.Key)]
			o.versions++
			if aws.ToBool(v.IsLatest) {
				o.etag = aws.ToString(v.ETag)
			}
			all[aws.ToString(v.Key)] = o
		}
	}
	return all, nil
}

func (l *Ledger) auditFiles(report *Report, kept map[string]object) {
	for key, f := range l.files {
		o := kept[key]
		switch {
		case f.deleted+f.missing > 0:
			report.Acknowledged++
			if o.versions > 0 {
				l.breach("%s was said to be gone, and %d versions of it are left", f.ID, o.versions)
			}
		case f.uncertain > 0:
			report.Uncertain++
		default:
			report.Refused++
			if o.etag != f.etag() {
				l.breach("%s was not deleted by anybody, and is not there as it was", f.ID)
			}
		}
	}
}

func (f *File) key() string { return files.Key(f.Workspace, f.ID) }

func (f *File) etag() string {
	sum := md5.Sum([]byte(f.Content())) //nolint:gosec // what S3 calls ETag
	return `"` + hex.EncodeToString(sum[:]) + `"`
}
