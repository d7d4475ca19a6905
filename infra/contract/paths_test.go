package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestFileIDs: what is no file id is 404 like an unknown one, however it is
// written, and counts like one.
func TestFileIDs(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	unknown := del("file_unknown").as(n.key(t, managementKey())).do(t).is(t, http.StatusNotFound)
	file := n.file(t, n.workspace)
	for name, id := range map[string]string{
		"no prefix":         strings.TrimPrefix(file, "file_"),
		"prefix alone":      "file_",
		"other prefix":      strings.Replace(file, "file_", "File_", 1),
		"longest":           "file_" + strings.Repeat("x", 200),
		"one too long":      "file_" + strings.Repeat("x", 201),
		"far too long":      "file_" + strings.Repeat("x", 4000),
		"dot":               file + ".",
		"escaped letter":    escaped(file),
		"escaped underline": strings.Replace(file, "_", "%5f", 1),
		"escaped twice":     "%25" + escaped(file)[1:],
		"escaped slash":     file + "%2F",
		"escaped path":      "file_x%2f..%2f" + file,
		"escaped dots":      "%2e%2e%2f" + file,
		"escaped backslash": file + "%5c",
		"escaped zero":      file + "%00",
		"escaped line feed": file + "%0a",
		"escaped space":     "%20" + file,
		"plus":              file + "+",
		"not UTF-8":         file + "%ff",
		"replacement":       file + "%ef%bf%bd",
		"wide letter":       "file_%ef%bc%a1",
		"semicolon":         file + ";v=1",
		"colon":             file + ":delete",
		"star":              "file_*",
		"tilde":             file + "~",
		"uuid":              unknownJob,
		"escaped braces":    "%7bfile_id%7d",
		"broken escape":     file + "%zz",
		"cut escape":        file + "%2",
	} {
		t.Run(name, func(t *testing.T) {
			got := del(id).as(n.key(t, managementKey())).do(t)
			indistinguishable(t, got, unknown)
			if remaining := got.limits(t).remaining; remaining != burst-1 {
				t.Errorf("%d deletes remain, want %d", remaining, burst-1)
			}
		})
	}
	del(file).as(n.management).do(t).is(t, http.StatusOK)
}

// TestShapesOfFileIDs: the shortest, the longest and every character.
func TestShapesOfFileIDs(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for _, id := range []string{"file_x", "file_" + strings.Repeat("x", 200), "file_-_AZaz09", "file_file_"} {
		n.upload(t, n.workspace, id)
		del(id+"x").as(n.management).do(t).is(t, http.StatusNotFound)
		del(id).as(n.management).do(t).is(t, http.StatusOK)
		if n.exists(t, n.workspace, id) {
			t.Errorf("%s is still there", id)
		}
	}
}

// TestJobIDs: what is no UUID is 404 like an unknown one.
func TestJobIDs(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	unknown := get(unknownJob).as(n.management).do(t).is(t, http.StatusNotFound)
	id := n.job(t, "queued")
	for name, id := range map[string]string{
		"in braces":       "%7b" + id + "%7d",
		"as urn":          "urn:uuid:" + id,
		"without dashes":  strings.ReplaceAll(id, "-", ""),
		"dashes moved":    id[:7] + "-" + id[7:8] + id[9:],
		"one short":       id[:35],
		"one long":        id + "0",
		"no hex":          "g" + id[1:],
		"escaped digit":   escaped(id),
		"trailing space":  id + "%20",
		"wide digits":     "%ef%bc%90" + id[1:],
		"text":            "latest",
		"nil":             "00000000-0000-0000-0000-000000000000",
		"far too long":    strings.Repeat("0", 4000),
		"escaped slash":   id + "%2f",
		"escaped newline": id + "%0a",
		"broken escape":   id + "%zz",
		"cut escape":      id + "%",
	} {
		t.Run(name, func(t *testing.T) {
			indistinguishable(t, get(id).as(n.management).do(t), unknown)
		})
	}
}

// escaped is id with its first character percent-encoded.
func escaped(id string) string { return fmt.Sprintf("%%%02x%s", id[0], id[1:]) }

// TestWorkspaceParameter: one canonical or upper-case UUID; everything else is
// 404. Other parameters are nobody's business.
func TestWorkspaceParameter(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	w, upper := n.second, strings.ToUpper(n.second)
	for query, found := range map[string]bool{
		"workspace_id=" + w:                                  true,
		"workspace_id=" + upper:                              true,
		"a=b&workspace_id=" + w + "&limit=1":                 true,
		"workspace_id=" + w + "&WORKSPACE_ID=x":              true,
		"%ff=1&%fe=2&workspace_id=" + w + "&%zz=%&%=":        true,
		"%ff=1&workspace_id=" + w + "&%fe&workspace%5fid=":   false,
		"workspace%5fid=" + w:                                true,
		"":                                                   false, // the default workspace, which has no such file
		"Workspace_id=" + w:                                  false,
		"workspace_id[]=" + w:                                false,
		"workspace_id":                                       false,
		"workspace_id=":                                      false,
		"workspace_id=" + w + "&workspace_id=" + w:           false,
		"workspace_id=" + w + "&workspace_id=":               false,
		"workspace_id=" + w + "," + w:                        false,
		"workspace_id=%20" + w:                               false,
		"workspace_id=" + w + "%00":                          false,
		"workspace_id=%7b" + w + "%7d":                       false,
		"workspace_id=" + strings.ReplaceAll(w, "-", ""):     false,
		"workspace_id=urn:uuid:" + w:                         false,
		"workspace_id=null":                                  false,
		"workspace_id=" + n.workspace:                        false,
		"workspace_id=" + strings.Repeat("0", 4000):          false,
		"workspace_id=00000000-0000-0000-0000-000000000000":  false,
		"workspace_id=" + w[:35] + "%ff":                     false,
		"workspace_id=" + w + "&workspace_id=" + n.workspace: false,
	} {
		t.Run(query, func(t *testing.T) {
			file := n.file(t, n.second)
			want := http.StatusNotFound
			if found {
				want = http.StatusOK
			}
			r := del(file)
			r.path += "?" + query
			r.as(n.key(t, managementKey())).do(t).is(t, want)
			if n.exists(t, n.second, file) == found {
				t.Errorf("after the %d the file is there: %v", want, !found)
			}
		})
	}
}
