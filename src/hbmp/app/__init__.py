"""What people see: the command line, the web page, the demo. It uses what any user could use."""
