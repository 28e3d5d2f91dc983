package migrate

// RecycleAfter is recycleAfter.
const RecycleAfter = recycleAfter
