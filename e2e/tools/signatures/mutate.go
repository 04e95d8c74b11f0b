package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand"
	"sort"
	"strings"
)

// How many each fixture gets.
const wanted = 200

// A Mutation replaces some bytes of one part of a candidate. Inserted is `'` and the text, `=` and the text in base64 where it can't be
// written as it is, or `@fixture,part,at,length` for what another fixture has there.
type Mutation struct {
	What, Part  string
	At, Removed int
	Inserted    string
	Candidate   Candidate
}

// mutations are the same ones for the same fixtures: a bit in what is encoded, a bit in the text, a member that is gone, and a value of
// another fixture's.
func mutations(fixture Fixture, all []Fixture) []Mutation {
	chance := rand.New(rand.NewSource(seed(fixture.Name)))
	places := placesOf(fixture.Candidate)
	var found []Mutation
	seen := map[string]bool{}
	keep := func(what, part string, at, removed int, insert, inserted string) {
		text := partOf(fixture.Candidate, part)
		changed := text[:at] + insert + text[at+removed:]
		if changed == text || seen[part+changed] {
			return
		}
		seen[part+changed] = true
		path := innermost(places, part, at, at+removed)
		found = append(found, Mutation{what + ":" + path, short(part), at, removed, inserted, withPart(fixture.Candidate, part, changed)})
	}
	literal := func(what, part string, at, removed int, insert string) {
		written := "'" + insert
		if strings.IndexFunc(insert, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
			written = "=" + base64.StdEncoding.EncodeToString([]byte(insert))
		}
		keep(what, part, at, removed, insert, written)
	}

	for _, place := range places {
		if place.memberEnd > place.memberStart {
			literal("drop", place.part, place.memberStart, place.memberEnd-place.memberStart, "")
		}
	}
	for _, name := range sorted(fixture.Candidate.Annotations) {
		literal("empty", name, 0, len(fixture.Candidate.Annotations[name]), "")
	}
	for _, other := range all {
		if other.Name == fixture.Name || (other.Candidate.Bundle == "") != (fixture.Candidate.Bundle == "") {
			continue
		}
		theirs := placesOf(other.Candidate)
		for _, place := range places {
			for _, their := range theirs {
				if their.part != place.part || their.path != place.path || place.end-place.start < 16 || chance.Intn(6) != 0 {
					continue
				}
				from := fmt.Sprintf("@%s,%s,%d,%d", other.Name, short(their.part), their.start, their.end-their.start)
				text := partOf(other.Candidate, their.part)[their.start:their.end]
				keep("swap", place.part, place.start, place.end-place.start, text, from)
			}
		}
	}
	chance.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	if len(found) > wanted/2 {
		found = found[:wanted/2]
	}

	for tries := 0; len(found) < wanted && tries < 100*wanted; tries++ {
		place := places[chance.Intn(len(places))]
		value := partOf(fixture.Candidate, place.part)[place.start:place.end]
		if len(value) == 0 {
			continue
		}
		if changed, ok := flipInside(value, chance); ok && chance.Intn(4) != 0 {
			at, removed, insert := difference(value, changed)
			literal("bit", place.part, place.start+at, removed, insert)
			continue
		}
		at := chance.Intn(len(value))
		flipped := value[at] ^ byte(1<<chance.Intn(7))
		literal("text", place.part, place.start+at, 1, string([]byte{flipped}))
	}
	return found
}

func seed(name string) int64 {
	hash := fnv.New32()
	_, _ = hash.Write([]byte(name))
	return int64(hash.Sum32())
}

// short names a part by one letter: P, B, or the first of an annotation's.
func short(part string) string {
	switch part {
	case "payload":
		return "P"
	case "bundle":
		return "B"
	case "dev.sigstore.cosign/chain":
		return "h"
	default:
		_, name, _ := strings.Cut(part, "/")
		return name[:1]
	}
}

// innermost is the name of the smallest member that has all of a change in it, whatever place in a list it is at.
func innermost(places []place, part string, from, to int) string {
	best := place{path: part, end: 1 << 30}
	for _, place := range places {
		start, end := place.start, place.end
		if place.memberEnd > 0 {
			start, end = place.memberStart, place.memberEnd
		}
		if place.part == part && start <= from && to <= end && end-start < best.end-best.start {
			best, best.start, best.end = place, start, end
		}
	}
	names := strings.Split(best.path[strings.LastIndex(best.path, "/")+1:], ".")
	for at := len(names) - 1; at > 0; at-- {
		if strings.Trim(names[at], "0123456789") != "" {
			return names[at]
		}
	}
	return names[0]
}

// flipInside flips a bit of what is written in base64, in PEM, or in hexadecimal digits.
func flipInside(value string, chance *rand.Rand) (string, bool) {
	text := strings.Trim(value, `"`)
	quote := ""
	if text != value {
		quote = `"`
	}
	if head := "-----BEGIN CERTIFICATE-----\n"; strings.HasPrefix(value, head) {
		// One line of it.
		lines := strings.Split(value, "\n")
		at := 1 + chance.Intn(len(lines)-3)
		changed, ok := flipInside(lines[at], chance)
		if ok {
			lines[at] = changed
		}
		return strings.Join(lines, "\n"), ok
	}
	if raw, err := base64.StdEncoding.Strict().DecodeString(text); err == nil && len(raw) > 8 {
		raw[chance.Intn(len(raw))] ^= byte(1 << chance.Intn(8))
		return quote + base64.StdEncoding.EncodeToString(raw) + quote, true
	}
	if raw, err := hex.DecodeString(text); err == nil && len(raw) > 8 {
		raw[chance.Intn(len(raw))] ^= byte(1 << chance.Intn(8))
		return quote + hex.EncodeToString(raw) + quote, true
	}
	return value, false
}

func difference(before, after string) (at, removed int, insert string) {
	for at < len(before) && at < len(after) && before[at] == after[at] {
		at++
	}
	tail := 0
	for tail < len(before)-at && tail < len(after)-at && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	return at, len(before) - tail - at, after[at : len(after)-tail]
}

// A place is a value somewhere in a part: where it begins and ends, and, in JSON, where its member does, with a comma.
type place struct {
	part, path             string
	start, end             int
	memberStart, memberEnd int
}

func partOf(candidate Candidate, part string) string {
	switch part {
	case "payload":
		return candidate.Payload
	case "bundle":
		return candidate.Bundle
	default:
		return candidate.Annotations[part]
	}
}

func withPart(candidate Candidate, part, text string) Candidate {
	switch part {
	case "payload":
		candidate.Payload = text
	case "bundle":
		candidate.Bundle = text
	default:
		annotations := map[string]string{}
		for name, value := range candidate.Annotations {
			annotations[name] = value
		}
		annotations[part] = text
		candidate.Annotations = annotations
	}
	return candidate
}

func placesOf(candidate Candidate) []place {
	if candidate.Bundle != "" {
		return placesIn("bundle", candidate.Bundle)
	}
	places := placesIn("payload", candidate.Payload)
	for _, name := range sorted(candidate.Annotations) {
		value := candidate.Annotations[name]
		if strings.HasPrefix(value, "{") {
			places = append(places, placesIn(name, value)...)
		} else {
			places = append(places, place{part: name, path: name, end: len(value)})
		}
	}
	return places
}

// placesIn walks a JSON text and notes every value in it.
func placesIn(part, text string) []place {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var places []place
	var walk func(path string) (start, end int, err error)
	walk = func(path string) (int, int, error) {
		from := int(decoder.InputOffset())
		token, err := decoder.Token()
		if err != nil {
			return 0, 0, err
		}
		start := from + strings.IndexFunc(text[from:], func(r rune) bool { return !strings.ContainsRune(" \n\t,:", r) })
		delimiter, nested := token.(json.Delim)
		for count := 0; nested && decoder.More(); count++ {
			inner := path + "." + fmt.Sprint(count)
			memberStart := int(decoder.InputOffset())
			if delimiter == '{' {
				key, err := decoder.Token()
				if err != nil {
					return 0, 0, err
				}
				inner = path + "." + key.(string)
			}
			valueStart, valueEnd, err := walk(inner)
			if err != nil {
				return 0, 0, err
			}
			memberEnd := valueEnd
			// The first member takes the comma after it along, all others the one before them.
			if count == 0 && strings.HasPrefix(strings.TrimLeft(text[memberEnd:], " \n"), ",") {
				memberEnd += strings.Index(text[memberEnd:], ",") + 1
			}
			places = append(places, place{part, strings.TrimPrefix(inner, "."), valueStart, valueEnd, memberStart, memberEnd})
		}
		if nested {
			if _, err := decoder.Token(); err != nil {
				return 0, 0, err
			}
		}
		return start, int(decoder.InputOffset()), nil
	}
	if _, _, err := walk(""); err != nil && err != io.EOF {
		panic(err)
	}
	sort.SliceStable(places, func(i, j int) bool { return places[i].start < places[j].start })
	return places
}
