package contract_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

// deletesEveryVersion: in a versioned bucket a 200 means the same as in any
// other. What a delete by somebody else, or one that was cut off, left behind is
// deleted too; a file whose id only begins alike is not.
func deletesEveryVersion(t *testing.T, p place) {
	n := p.tenant(t)
	const file, longer = "file_a", "file_ab"
	for name, prepare := range map[string]func(){
		"one version":     func() { n.upload(t, n.workspace, file) },
		"three versions":  func() { n.upload(t, n.workspace, file); n.upload(t, n.workspace, file); n.upload(t, n.workspace, file) },
		"hidden versions": func() { n.upload(t, n.workspace, file); n.hide(t, n.workspace, file) },
		"a marker alone":  func() { n.upload(t, n.workspace, file); n.hide(t, n.workspace, file); n.erase(t, n.workspace, file) },
	} {
		t.Run(name, func(t *testing.T) {
			n.upload(t, n.workspace, longer)
			prepare()
			del(file).as(n.management).at(p).do(t).is(t, http.StatusOK)
			if n.exists(t, n.workspace, file) {
				t.Error("versions are left")
			}
			del(file).as(n.management).at(p).do(t).is(t, http.StatusNotFound)
			del(longer).as(n.management).at(p).do(t).is(t, http.StatusOK)
		})
	}
}

// hide puts a delete marker over whatever versions the file has.
func (n tenant) hide(t *testing.T, workspace, file string) {
	t.Helper()
	_, err := n.s3.DeleteObject(t.Context(), &s3.DeleteObjectInput{
		Bucket: &n.names.Files, Key: aws.String(files.Key(ids.Workspace(workspace), ids.File(file))),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// erase deletes the bytes of a file and leaves its delete marker.
func (n tenant) erase(t *testing.T, workspace, file string) {
	t.Helper()
	key := files.Key(ids.Workspace(workspace), ids.File(file))
	out, err := n.s3.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &n.names.Files, Prefix: &key})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range out.Versions {
		if aws.ToString(v.Key) != key {
			continue
		}
		_, err := n.s3.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &n.names.Files, Key: &key, VersionId: v.VersionId})
		if err != nil {
			t.Fatal(err)
		}
	}
}
