package main

import (
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// mapVersion is one version of the map without the map, as JSON has it.
type mapVersion struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`             // as whoever made it says
	Role    string    `json:"role,omitempty"` // as the control database says
	Why     string    `json:"why"`
}

func versionOf(e mapstore.Entry) mapVersion {
	return mapVersion{Version: e.Map.Version(), At: e.At.UTC(), By: e.By, Role: e.Role, Why: e.Why}
}

// String returns all of it on one line.
func (v mapVersion) String() string {
	text := fmt.Sprintf("version %d, %s", v.Version, stamp(v.At))
	if by := v.who(); by != "" {
		text += " by " + by
	}
	if v.Why != "" {
		text += ": " + oneLine(v.Why)
	}
	return text
}

// who says who made it: the role if the store knows it, and the name that was given.
func (v mapVersion) who() string {
	role, by := oneLine(v.Role), oneLine(v.By)
	switch {
	case role == "":
		return by
	case by == "":
		return "role " + role
	}
	return fmt.Sprintf("role %s (claimed: %s)", role, by)
}
