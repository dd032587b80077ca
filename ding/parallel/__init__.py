"""The same training in many processes: services, where they live, and who tells them what to do."""
