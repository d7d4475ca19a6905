package files

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/shared/ids"
)

// Stored is what the bucket holds of a file, deleted or not.
type Stored struct {
	ID       ids.File
	Versions int // with bytes; 0 where only delete markers are left
	Bytes    int64
}

// Versions lists what Purge would remove, by file id, and changes nothing.
func (m *Manager) Versions(ctx context.Context, w ids.Workspace) ([]Stored, error) {
	prefix := Key(w, "")
	found := map[ids.File]Stored{}
	add := func(key *string, versions int, bytes int64) {
		id := ids.File(strings.TrimPrefix(aws.ToString(key), prefix))
		found[id] = Stored{ID: id, Versions: found[id].Versions + versions, Bytes: found[id].Bytes + bytes}
	}
	pages := s3.NewListObjectVersionsPaginator(m.s3, &s3.ListObjectVersionsInput{Bucket: &m.bucket, Prefix: &prefix, MaxKeys: aws.Int32(batch)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err == nil {
			err = sound(m.bucket, page)
		}
		if err != nil {
			return nil, fmt.Errorf("listing versions: %w", err)
		}
		for _, v := range page.Versions {
			add(v.Key, 1, aws.ToInt64(v.Size))
		}
		for _, d := range page.DeleteMarkers {
			add(d.Key, 0, 0)
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Stored) int { return cmp.Compare(a.ID, b.ID) }), nil
}
