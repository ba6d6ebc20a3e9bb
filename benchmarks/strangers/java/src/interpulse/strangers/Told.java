package interpulse.strangers;

import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.testng.IAnnotationTransformer;
import org.testng.IMethodInstance;
import org.testng.IMethodInterceptor;
import org.testng.ITestContext;
import org.testng.ITestListener;
import org.testng.ITestResult;
import org.testng.SkipException;
import org.testng.TestNG;
import org.testng.annotations.ITestAnnotation;

/**
 * Runs one class of TestNG, and writes a line for each of its tests: `listed`, `began`, then `passed`, `failed` or `skipped`, with
 * the name and what was wrong. Arguments: where it writes, the class, a pattern of the names of its tests.
 */
public final class Told implements ITestListener, IMethodInterceptor, IAnnotationTransformer {
    private static final int NOTE_CHARACTERS_MAX = 400;
    private static final long MILLISECONDS_MAX = 120_000;
    /** Of a test that has no bound of its own. */

    private static final Pattern INSIDES = Pattern.compile("\"this\\.(mockZooKeeper|pulsarTestContext|pulsar|admin)\\b");
    private final PrintStream out;
    private final Pattern chosen;

    private Told(PrintStream out, Pattern chosen) {
        this.out = out;
        this.chosen = chosen;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(Files.newOutputStream(Path.of(arguments[0])), true);
        TestNG suite = new TestNG(false);
        suite.setVerbose(0);
        suite.addListener(new Told(out, Pattern.compile(arguments[2])));
        suite.setTestClasses(new Class<?>[] {Class.forName(arguments[1])});
        suite.run();
        out.println("end\t\t");
        System.exit(0);
    }

    @Override
    public List<IMethodInstance> intercept(List<IMethodInstance> methods, ITestContext context) {
        List<IMethodInstance> left = methods.stream().filter(each -> chosen.matcher(name(each)).find()).collect(Collectors.toList());
        left.stream().map(Told::name).distinct().forEach(each -> tell("listed", each, null));
        return left;
    }

    @Override
    @SuppressWarnings("rawtypes")
    public void transform(ITestAnnotation annotation, Class type, Constructor constructor, Method method) {
        if (annotation.getTimeOut() == 0) {
            annotation.setTimeOut(MILLISECONDS_MAX);
        }
    }

    @Override
    public void onTestStart(ITestResult result) {
        tell("began", name(result), null);
    }

    @Override
    public void onTestSuccess(ITestResult result) {
        tell("passed", name(result), null);
    }

    @Override
    public void onTestFailure(ITestResult result) {
        tell(isInside(result.getThrowable()) ? "skipped" : "failed", name(result), result.getThrowable());
    }

    @Override
    public void onTestSkipped(ITestResult result) {
        tell(isInside(result.getThrowable()) ? "skipped" : "failed", name(result), result.getThrowable());
    }

    private static boolean isInside(Throwable thrown) {
        for (Throwable each = thrown; each != null; each = each.getCause()) {
            if (each instanceof SkipException) {
                return true;
            }
            if (each instanceof NullPointerException && INSIDES.matcher(String.valueOf(each.getMessage())).find()) {
                return true;
            }
        }
        return false;
    }

    private static String name(IMethodInstance method) {
        return method.getMethod().getRealClass().getSimpleName() + "." + method.getMethod().getMethodName();
    }

    private static String name(ITestResult result) {
        return result.getMethod().getRealClass().getSimpleName() + "." + result.getMethod().getMethodName();
    }

    private void tell(String what, String name, Throwable thrown) {
        String note = "";
        if (thrown != null) {
            note = thrown.toString() + at(thrown);
            note = note.replaceAll("\\s+", " ");
            note = note.length() > NOTE_CHARACTERS_MAX ? note.substring(0, NOTE_CHARACTERS_MAX) : note;
        }
        out.println(what + "\t" + name + "\t" + note);
        if (thrown != null) {
            System.out.println("--- " + name);
            thrown.printStackTrace(System.out);
        }
    }

    /** The line of the test that threw. */
    private static String at(Throwable thrown) {
        for (StackTraceElement each : thrown.getStackTrace()) {
            if (String.valueOf(each.getFileName()).endsWith("Test.java")) {
                return " at " + each.getFileName() + ":" + each.getLineNumber();
            }
        }
        return "";
    }
}
