// Print the layout of Tekton's types as JSON: the members of each struct in the order in which Go writes them.
//
// tools/tekton/generate.py runs this in a copy of tektoncd/pipeline.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
)

type member struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Omitted string `json:"omitted,omitempty"`
}

var structs = map[string][]member{}
var marshaler = reflect.TypeOf((*json.Marshaler)(nil)).Elem()

// nameOf returns the name of a type: "string", "int", "bool", "float", "bytes", "any", "*T", "[]T", "{}T", a struct or a
// type with a marshaler.
func nameOf(t reflect.Type) string {
	if t.Kind() == reflect.Ptr {
		return "*" + nameOf(t.Elem())
	}
	if t.Implements(marshaler) || reflect.PtrTo(t).Implements(marshaler) {
		return "!" + t.String()
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		return "int"
	case reflect.Float32, reflect.Float64:
		return "float"
	case reflect.Interface:
		return "any"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + nameOf(t.Elem())
	case reflect.Map:
		return "{}" + nameOf(t.Elem())
	case reflect.Struct:
		describe(t)
		return key(t)
	}
	panic(fmt.Sprintf("unexpected type %s", t))
}

func describe(t reflect.Type) {
	if _, known := structs[key(t)]; known {
		return
	}
	structs[key(t)] = nil
	structs[key(t)] = membersOf(t)
}

func membersOf(t reflect.Type) []member {
	found := []member{}
	for _, field := range reflect.VisibleFields(t) {
		if len(field.Index) > 1 {
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			inner := field.Type
			if inner.Kind() == reflect.Ptr {
				panic("embedded pointer")
			}
			found = append(found, membersOf(inner)...)
			continue
		}
		if name == "-" || !field.IsExported() {
			continue
		}
		if name == "" {
			name = field.Name
		}
		omitted := ""
		if strings.Contains(options, "omitempty") {
			omitted = "empty"
		}
		if strings.Contains(options, "omitzero") {
			omitted += "zero"
		}
		found = append(found, member{name, nameOf(field.Type), omitted})
	}
	return found
}

func main() {
	describe(reflect.TypeOf(v1.Task{}))
	describe(reflect.TypeOf(v1.Pipeline{}))
	describe(reflect.TypeOf(v1beta1.Task{}))
	describe(reflect.TypeOf(v1beta1.Pipeline{}))
	describe(reflect.TypeOf(v1beta1.StepAction{}))
	encoder := json.NewEncoder(os.Stdout)
	if err := encoder.Encode(structs); err != nil {
		panic(err)
	}
}

// key returns the package and the name of a struct; several packages are called v1.
func key(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return strings.Join(parts[len(parts)-2:], "/") + "." + t.Name()
}
