// Package figures writes numbers for people.
package figures

import "fmt"

// Thousands writes a number with commas: 1,048,576.
func Thousands[N int | int64](n N) string {
	digits := fmt.Sprint(n)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(digits) - 3; i > start; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Megabytes writes a size in units of 10⁶ bytes: 12.3 MB.
func Megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
