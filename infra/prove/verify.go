package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// verify asks what can be asked of a stack in use, with test accounts that it
// removes again.
func verify(ctx context.Context, o options) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	a := &asker{clients: c, root: o.root, http: newHTTP(), patience: o.patience, began: time.Now()}
	if o.suite {
		a.suite = runSuite
	}
	if a.target, err = c.target(ctx, o.stack); err != nil {
		return err
	}
	a.skipped = skippedBy(a.parameters)
	a.made = filepath.Join(o.root, ".build", "prove", o.stack+"-made.txt")
	if err := os.MkdirAll(filepath.Dir(a.made), 0o750); err != nil {
		return err
	}
	// What a run that was killed has left goes first.
	if err := a.removeMade(ctx, o.out); err != nil {
		return err
	}
	results, err := a.verifyAll(ctx, o)
	// The removal has a context of its own: that of the run may be over.
	end, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = errors.Join(err, a.removeMade(end, o.out))
	title := fmt.Sprintf("Asked of stack %s in %s on %s.", o.stack, c.config.Region, time.Now().Format(time.DateOnly))
	if len(results) == 0 {
		return err
	}
	return errors.Join(err, o.write(title, all(), results))
}

func (a *asker) verifyAll(ctx context.Context, o options) (results []result, err error) {
	a.tenant, err = a.newTenant(ctx, "make verify")
	err = errors.Join(err, a.note("account", a.account), a.note("job", a.job))
	if err != nil {
		return nil, err
	}
	for _, p := range all() {
		if !p.live {
			continue
		}
		r := askOne(ctx, p, a)
		_, _ = fmt.Fprintf(o.stderr, "%-9s %s: %s\n", r.Verdict, r.ID, r.Seen)
		results = append(results, r)
	}
	return results, ctx.Err()
}

// skippedBy names the tests of the contract suite that are not for a stack in use: one
// scans its control table, others need the suite's own limiter.
func skippedBy(parameters map[string]string) string {
	const scans = "^TestItemsExpire$"
	if parameters["DeleteRatePerMinute"] == "1" && parameters["DeleteBurst"] == "20" {
		return scans
	}
	return scans + "|^TestLimiterHeaders$|^TestBurstIsExact$|^TestFileIDs$|^TestDeletesAtOnce$|^TestEveryStatus$|^TestOrderOfChecks$"
}

// note writes down what was made, as the contract suite does.
func (a *asker) note(kind, id string) error {
	if id == "" {
		return nil
	}
	file, err := os.OpenFile(a.made, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing down what is made: %w", err)
	}
	_, err = fmt.Fprintln(file, kind, id)
	return errors.Join(err, file.Close())
}

// removeMade removes the accounts and jobs that the file names, with all that
// belongs to them, and then the file.
func (a *asker) removeMade(ctx context.Context, out io.Writer) error {
	file, err := os.Open(a.made)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading what was made: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	var accounts, jobs []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		switch kind, id, _ := strings.Cut(lines.Text(), " "); kind {
		case "account":
			accounts = append(accounts, id)
		case "job":
			jobs = append(jobs, id)
		}
	}
	for _, job := range jobs {
		if err := a.removeItem(ctx, "SyncJobsTableName", item{"pk": text("job#" + job)}); err != nil {
			return err
		}
	}
	for _, account := range accounts {
		if err := a.removeAccount(ctx, ids.Account(account)); err != nil {
			return fmt.Errorf("removing test account %s (run make verify again): %w", account, err)
		}
	}
	_, _ = fmt.Fprintf(out, "\nRemoved: %d test accounts with their workspaces, keys, credentials and files, and %d jobs.\n"+
		"Stays: their log lines; until they expire, within a day or two, their idempotency records and the limiter items of keys that tests deleted.\n", len(accounts), len(jobs))
	return os.Remove(a.made)
}

type item = map[string]dbtypes.AttributeValue

func text(s string) dbtypes.AttributeValue { return &dbtypes.AttributeValueMemberS{Value: s} }

// removeAccount removes an account with all rows and files; its own rows, which name
// the others, last.
func (a *asker) removeAccount(ctx context.Context, account ids.Account) error {
	registry := auth.NewRegistry(a.db, a.outputs["AccessTableName"])
	workspaces, err := registry.ListWorkspaces(ctx, account)
	if errors.Is(err, auth.ErrNoAccount) {
		return nil
	}
	if err != nil {
		return err
	}
	keys, err := registry.ListKeys(ctx, account)
	if err != nil {
		return err
	}
	for _, w := range workspaces {
		if err := errors.Join(
			a.removePartition(ctx, "CredentialsTableName", "workspace#"+string(w.ID)),
			a.removeFiles(ctx, "files/"+string(w.ID)+"/"),
			a.removePartition(ctx, "AccessTableName", "workspace#"+string(w.ID)),
		); err != nil {
			return err
		}
	}
	for _, k := range keys {
		if err := errors.Join(
			a.removeItem(ctx, "ControlTableName", item{"pk": text("limit#delete-file#" + string(k.Hash))}),
			a.removePartition(ctx, "AccessTableName", "key#"+string(k.Hash)),
		); err != nil {
			return err
		}
	}
	return a.removePartition(ctx, "AccessTableName", "account#"+string(account))
}

// removePartition removes all items of a partition.
func (a *asker) removePartition(ctx context.Context, table, pk string) error {
	pages := dynamodb.NewQueryPaginator(a.db, &dynamodb.QueryInput{
		TableName: aws.String(a.outputs[table]), KeyConditionExpression: aws.String("pk = :pk"), ConsistentRead: aws.Bool(true),
		ProjectionExpression: aws.String("pk, sk"), ExpressionAttributeValues: item{":pk": text(pk)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("reading %s: %w", table, err)
		}
		for _, key := range page.Items {
			if err := a.removeItem(ctx, table, key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *asker) removeItem(ctx context.Context, table string, key item) error {
	_, err := a.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(a.outputs[table]), Key: key})
	if err != nil {
		return fmt.Errorf("deleting an item of %s: %w", table, err)
	}
	return nil
}

// removeFiles removes every version of the objects under a prefix.
func (a *asker) removeFiles(ctx context.Context, prefix string) error {
	return removeVersions(ctx, a.s3, *a.bucket(), prefix)
}

// removeVersions removes every version and delete marker under a prefix.
func removeVersions(ctx context.Context, client *s3.Client, bucket, prefix string) error {
	pages := s3.NewListObjectVersionsPaginator(client, &s3.ListObjectVersionsInput{Bucket: &bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("listing bucket %s: %w", bucket, err)
		}
		var all []s3types.ObjectIdentifier
		for _, v := range page.Versions {
			all = append(all, s3types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, m := range page.DeleteMarkers {
			all = append(all, s3types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
		}
		for part := range slices.Chunk(all, 1000) {
			out, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &s3types.Delete{Objects: part}})
			if err == nil && len(out.Errors) > 0 {
				err = fmt.Errorf("%s: %s", aws.ToString(out.Errors[0].Code), aws.ToString(out.Errors[0].Message))
			}
			if err != nil {
				return fmt.Errorf("emptying bucket %s: %w", bucket, err)
			}
		}
	}
	return nil
}
