package ledger

import (
	"context"
	"crypto/md5" //nolint:gosec // S3's ETag
	"fmt"
	"strings"

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

// parallel bounds the concurrent calls of an audit.
const parallel = 8

// Report is the result of an audit.
type Report struct {
	// Acknowledged, Refused and Uncertain count credentials and files.
	Acknowledged, Refused, Uncertain int
	// Opened counts the credentials that were opened.
	Opened int
	// Broken are the promises that were not kept.
	Broken []string
}

// row is a stored credential, in the documented layout (package byok).
type row struct {
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

// content is what is stored.
type content struct {
	rows []row
	// opened are the provider keys of the rows, in their order; an error's text
	// where one does not open.
	opened []string
	// versions and etags are those of each object.
	versions map[string]int
	etags    map[string]string
}

// Audit compares storage with the ledger. No client may be writing.
func (l *Ledger) Audit(ctx context.Context, stack *testkit.Stack) (Report, error) {
	stored := content{versions: map[string]int{}, etags: map[string]string{}}
	rows := dynamodb.NewScanPaginator(stack.DynamoDB, &dynamodb.ScanInput{TableName: &stack.Credentials, ConsistentRead: aws.Bool(true)})
	for rows.HasMorePages() {
		page, err := rows.NextPage(ctx)
		if err != nil {
			return Report{}, fmt.Errorf("reading credentials: %w", err)
		}
		var some []row
		if err := attributevalue.UnmarshalListOfMaps(page.Items, &some); err != nil {
			return Report{}, fmt.Errorf("decoding credentials: %w", err)
		}
		stored.rows = append(stored.rows, some...)
	}
	objects := s3.NewListObjectVersionsPaginator(stack.S3, &s3.ListObjectVersionsInput{Bucket: &stack.Files})
	for objects.HasMorePages() {
		page, err := objects.NextPage(ctx)
		if err != nil {
			return Report{}, fmt.Errorf("listing the bucket: %w", err)
		}
		for _, v := range page.Versions {
			key := aws.ToString(v.Key)
			if stored.versions[key]++; aws.ToBool(v.IsLatest) {
				stored.etags[key] = strings.Trim(aws.ToString(v.ETag), `"`)
			}
		}
	}
	stored.opened = make([]string, len(stored.rows))
	opener := seal.NewOpener(stack.KMS, stack.SealingKey)
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, r := range stored.rows {
		group.Go(func() error {
			binding := seal.Binding{Account: l.account, Workspace: r.Workspace, Credential: r.ID, Provider: r.Provider}
			plain, err := opener.Open(ctx, seal.Sealed(r.Seal), binding)
			if err != nil {
				stored.opened[i] = err.Error()
				return nil
			}
			defer plain.Wipe()
			stored.opened[i] = string(plain.Reveal())
			return nil
		})
	}
	_ = group.Wait() // none returns an error
	return l.compare(stored), ctx.Err()
}

// compare compares what is stored with the ledger.
func (l *Ledger) compare(stored content) Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	report := Report{Opened: len(stored.rows)}
	for i, r := range stored.rows {
		if want := (&Order{Name: r.Name}).Secret(); stored.opened[i] != want {
			report.Opened--
			l.breach("%s does not open, or not to the key that was sent", r.Name)
		}
	}
	l.auditOrders(&report, stored.rows)
	l.auditFiles(&report, stored)
	report.Broken = l.broken
	return report
}

func (l *Ledger) auditOrders(report *Report, stored []row) {
	type position struct {
		workspace ids.Workspace
		provider  string
		number    int64
	}
	byName, taken := map[string][]row{}, map[position]string{}
	for _, r := range stored {
		byName[r.Name] = append(byName[r.Name], r)
		if l.orders[r.Name] == nil {
			l.breach("%s is stored and was never asked for", r.Name)
		}
		p := position{r.Workspace, r.Provider, r.SortOrder}
		if other, ok := taken[p]; ok {
			l.breach("%s and %s share position %d", other, r.Name, r.SortOrder)
		}
		taken[p] = r.Name
	}
	for _, o := range l.orders {
		switch {
		case o.first != nil:
			report.Acknowledged++
		case o.uncertain:
			report.Uncertain++
		default:
			report.Refused++
		}
		l.auditOrder(o, byName[o.Name])
	}
}

// auditOrder compares what is stored of one order with its responses.
func (l *Ledger) auditOrder(o *Order, stored []row) {
	switch {
	case len(stored) > 1:
		l.breach("%s is stored %d times", o.Name, len(stored))
	case len(stored) == 1 && (o.Forbidden || o.first == nil && !o.uncertain):
		l.breach("%s was refused and is stored", o.Name)
	case len(stored) == 0 && o.first != nil:
		l.breach("%s was acknowledged and is lost", o.Name)
	case o.first != nil:
		c, err := o.first.Credential()
		r := stored[0]
		if err != nil || c.ID != string(r.ID) || c.Workspace != string(r.Workspace) || c.Provider != r.Provider || c.SortOrder != r.SortOrder {
			l.breach("%s is stored otherwise than its response: %s", o.Name, o.first.Body)
		}
	}
}

func (l *Ledger) auditFiles(report *Report, stored content) {
	for key, f := range l.files {
		switch {
		case f.deleted+f.missing > 0:
			report.Acknowledged++
			if stored.versions[key] > 0 {
				l.breach("%s was deleted or missing, and %d versions of it are left", f.ID, stored.versions[key])
			}
		case f.uncertain:
			report.Uncertain++
		default:
			report.Refused++
			if stored.etags[key] != fmt.Sprintf("%x", md5.Sum([]byte(f.Content()))) { //nolint:gosec // S3's ETag
				l.breach("%s was not deleted, and is lost or changed", f.ID)
			}
		}
	}
}

// Key is the file's key in the bucket.
func (f *File) Key() string { return files.Key(f.Workspace, f.ID) }

// StoreFiles stores that many files in the workspaces by turns, and records them.
func (l *Ledger) StoreFiles(ctx context.Context, stack *testkit.Stack, workspaces []ids.Workspace, count int) ([]*File, error) {
	manager := files.NewManager(stack.S3, stack.Files)
	all := make([]*File, count)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range all {
		f := l.File(workspaces[i%len(workspaces)], ids.NewFile())
		all[i] = f
		group.Go(func() error {
			return manager.Upload(ctx, f.Workspace, f.ID, strings.NewReader(f.Content()), "text/plain")
		})
	}
	return all, group.Wait()
}

// Overwrite stores the file's content again: a second version where the bucket
// keeps versions.
func (f *File) Overwrite(ctx context.Context, stack *testkit.Stack) error {
	_, err := stack.S3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &stack.Files, Key: aws.String(f.Key()), Body: strings.NewReader(f.Content()),
	})
	return err
}
