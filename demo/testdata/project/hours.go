// Package hours writes lengths of time the way a timetable does.
package hours

import "fmt"

// Format writes minutes as hours and minutes: 90 is 1:30.
func Format(minutes int) string {
	return fmt.Sprintf("%d:%02d", minutes/60, minutes)
}
