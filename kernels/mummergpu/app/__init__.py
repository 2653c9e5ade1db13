"""``autotune run mummergpu``: an aligner of reads."""
