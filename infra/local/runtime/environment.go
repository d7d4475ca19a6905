package runtime

import (
	"maps"
	"path/filepath"
	"strconv"
	"time"

	"signalbox.dev/shared/ids"
)

// version is the published version of every function. Its alias calls this version.
const version = "1"

// environment returns the whole environment of the instance, with the address of its
// Runtime API.
func (i *instance) environment(api string) []string {
	f, folder := i.function, filepath.Dir(i.function.Binary)
	all := make(map[string]string)
	maps.Copy(all, f.Environment)
	maps.Copy(all, map[string]string{
		"AWS_DEFAULT_REGION":              i.config.Region,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(f.MemoryMB),
		"AWS_LAMBDA_FUNCTION_NAME":        f.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     version,
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_FORMAT":           "JSON",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + f.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      time.Now().UTC().Format("2006/01/02/") + "[" + version + "]" + ids.New[string](),
		"AWS_LAMBDA_RUNTIME_API":          api,
		"AWS_REGION":                      i.config.Region,
		"LAMBDA_RUNTIME_DIR":              folder,
		"LAMBDA_TASK_ROOT":                folder,
		"LANG":                            "en_US.UTF-8",
		"PATH":                            "/usr/local/bin:/usr/bin/:/bin:/opt/bin",
		"TZ":                              ":UTC",
		"_HANDLER":                        f.Handler,
	})
	var list []string
	for name, value := range all {
		list = append(list, name+"="+value)
	}
	return list
}
