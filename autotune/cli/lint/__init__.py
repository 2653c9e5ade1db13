"""What ``autotune lint`` looks at."""
