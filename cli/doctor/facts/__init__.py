"""Facts that the doctor gathers from servers, directories, files and this machine. Changes nothing."""
